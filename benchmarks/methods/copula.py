"""GC3P (Salinas, Shen, Perrone, ICML 2020): Gaussian copula transfer with a learnt prior, as a baseline.

Every task is brought to one scale by its ranks, so that tasks of any units can be pooled:

    z = Φ⁻¹(clip(F̂(y), δ, 1 − δ))      F̂(y) the share of the task's values strictly below y      ``to_normal_scores``
    z | x ~ N(μ(x), σ(x)²)              a small network, fitted to all sources at once            ``CopulaPrior``
    (z − μ(x))/σ(x) ~ GP                Matérn-5/2 on the target's own observations               ``CopulaPosterior``

Predictions are in z, not in the user's units, and the target's z change with every observation: GC3P is no BoTorch
model but a protocol, ``GC3PPrior.suggest``. Leading dimensions are independent problems, worked on in lockstep. On a
CPU each problem's network is bit for bit what it is alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

import torch
from botorch.acquisition.analytic import _log_ei_helper
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from headstart.data.dataset import Dataset, require_compatible, require_unit_cube, task_name
from headstart.data.units import spread_of
from headstart.errors import InputError
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, FitReport, Seed, fit, generator_from
from headstart.gp.hyperparameters import Layout
from headstart.gp.kernels import Kernel
from headstart.gp.threads import single_thread
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.layer import Layer, Propagation

# One for all problems, which then share their draws, or one for each
Seeds = Seed | Sequence[Seed]
# The numbers of inputs and outputs of every layer
Shapes = tuple[tuple[int, int], ...]

_NOISE_FLOOR = 1e-3  # of the residual process, a variance
_SIGMA_FLOOR = 1e-3  # added to softplus: a network can meet a few points exactly, and σ = 0 leaves no residual
_CHUNK = 2048  # candidates that are looked at together


def to_normal_scores(y: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """z = Φ⁻¹(clip(F̂(y), δ, 1 − δ)) with F̂(y) the share of values strictly below y, δ = 1/(4 n^¼ √(π ln n)).

    Only the order of y matters; equal values stay equal. Because F̂ < 1 the scores are not symmetric: the least value
    gets Φ⁻¹(δ), the middle one about 0. With n = 1 there is no order and δ is infinite: the score is 0, the median.
    """
    n = y.shape[-1]
    if n < 2:
        return torch.zeros_like(y)
    delta = 1 / (4 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    below = torch.searchsorted(y.sort(-1).values, y.contiguous())  # how many are strictly below
    return torch.special.ndtri((below.to(y) / n).clamp(delta, 1 - delta))  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Training:
    """How the network is fitted: the authors' settings.

    Adam makes ``steps`` steps at each of the ``learning_rates`` in turn. The description has 3 × 1000 steps from
    1e-2 and leaves open how the rate goes on: here it falls tenfold from round to round. Every ``check_every`` steps
    the network is compared on the validation rows, without dropout, and the best one is kept.
    """

    width: int = 50
    depth: int = 3
    dropout: float = 0.1
    learning_rates: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    steps: int = 1000
    batch_size: int = 64
    validation: float = 0.1
    check_every: int = 100


@dataclass(frozen=True, slots=True, eq=False)
class CopulaPrior:
    """z ~ N(μ(x), σ(x)²) at any x: a network on standardised inputs.

        h = A₀ x' + a₀;   h ← relu(A_i h + a_i), i = 1 … depth;   μ = A_μ h + a_μ,   σ = softplus(A_σ h + a_σ) + 1e-3

    ``theta`` are all A and a in order, one row per problem; dropout exists during training only.
    """

    theta: Float[Tensor, "*b p"]
    centre: Float[Tensor, "*b d"]
    scale: Float[Tensor, "*b d"]
    shapes: Shapes

    def predict(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*b m"], Float[Tensor, "*b m"]]:
        """μ and σ at every row of X."""
        inputs = (X - self.centre.unsqueeze(-2)) / self.scale.unsqueeze(-2)
        return _network(self.theta, self.shapes, inputs)


def _network(
    theta: Float[Tensor, "*b p"], shapes: Shapes, X: Float[Tensor, "*b m d"], keep: Tensor | None = None
) -> tuple[Float[Tensor, "*b m"], Float[Tensor, "*b m"]]:
    """μ and σ; ``keep`` (*b, depth, m, width) multiplies the hidden units, by 0 or 1/(1 − dropout)."""
    pieces = iter(theta.split([size for n_in, n_out in shapes for size in (n_in * n_out, n_out)], dim=-1))
    h = X
    for i, shape in enumerate(shapes):
        h = h @ next(pieces).unflatten(-1, shape) + next(pieces).unsqueeze(-2)
        if 0 < i < len(shapes) - 1:  # neither the first map nor the last
            h = h.relu() if keep is None else h.relu() * keep[..., i - 1, :, :]
    return h[..., 0], softplus(h[..., 1]) + _SIGMA_FLOOR


def _loss(z: Tensor, mean: Tensor, sd: Tensor) -> Float[Tensor, "P"]:
    """−log N(z; mean, sd²) less a constant, averaged over the rows."""
    return (sd.log() + 0.5 * ((z - mean) / sd).square()).mean(-1)


def _generators(seeds: Seeds, P: int) -> list[torch.Generator]:
    if not isinstance(seeds, Sequence):
        return [generator_from(seeds)]
    if len(seeds) != P:
        raise InputError(f"seed must be one for all or one for each of {P} problems, but there are {len(seeds)}.")
    return [generator_from(seed) for seed in seeds]


def _draws(draw: Callable[[torch.Generator], Tensor], generators: list[torch.Generator], like: Tensor) -> Tensor:
    """What each problem draws, (P, …) for ``like`` (P, …), made on the CPU; one generator serves all problems."""
    drawn = torch.stack([draw(generator) for generator in generators]).to(like.device)
    return drawn.expand(len(like), *drawn.shape[1:])


def _normal_draws(M: int, step: int, generator: torch.Generator) -> Float[Tensor, "M"]:
    """Standard normal draws for the given step; the first of them are the same for every M (not so torch.randn)."""
    own = generator_from(int(torch.randint(1 << 62, (step + 1,), generator=generator)[-1]))
    uniform = torch.rand(M, generator=own, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp_min(2.0**-54))  # type: ignore[no-any-return]


def _train(
    X: Float[Tensor, "P N d"], z: Float[Tensor, "P N"], shapes: Shapes, how: Training, generators: list[torch.Generator]
) -> Float[Tensor, "P p"]:
    """The network with the least validation loss of all that were checked on the way."""
    P, N, _ = X.shape
    steps, k = how.check_every, how.batch_size
    # every entry of A and a begins uniform in ±1/√(inputs of its layer)
    bounds = X.new_tensor([n_in**-0.5 for n_in, n_out in shapes for _ in range((n_in + 1) * n_out)])
    start = _draws(lambda g: torch.rand(len(bounds), generator=g, dtype=torch.float64), generators, X)
    theta = ((2 * start - 1) * bounds).requires_grad_()
    best, least = theta.detach().clone(), X.new_full((P,), torch.inf)
    n_held = max(1, round(how.validation * N))
    held, rest = _draws(lambda g: torch.randperm(N, generator=g), generators, X).split([n_held, N - n_held], dim=-1)
    problem = torch.arange(P, device=X.device).unsqueeze(-1)
    X_held, z_held = X[problem, held], z[problem, held]
    # neither fused nor foreach: they may round otherwise at the end of a tensor, and a batch must be its problems
    adam = torch.optim.Adam([theta], foreach=False)
    for rate, done in product(how.learning_rates, range(0, how.steps, how.check_every)):
        adam.param_groups[0]["lr"] = rate
        batches = _draws(lambda g: torch.randint(N - n_held, (steps, k), generator=g), generators, X)
        kept = _draws(lambda g: torch.rand(steps, how.depth, k, how.width, generator=g) >= how.dropout, generators, X)
        for step in range(min(steps, how.steps - done)):
            rows = rest.gather(-1, batches[:, step])
            adam.zero_grad()
            keep = kept[:, step].double() / (1 - how.dropout)
            _loss(z[problem, rows], *_network(theta, shapes, X[problem, rows], keep)).sum().backward()
            adam.step()
        with torch.no_grad():
            loss = _loss(z_held, *_network(theta, shapes, X_held))
            better = loss < least
            best, least = torch.where(better.unsqueeze(-1), theta, best), torch.where(better, loss, least)
    return best


@dataclass(frozen=True, slots=True, eq=False)
class CopulaPosterior:
    """z(x) ~ N(μ + σ m_r, (σ s_r)²), with (m_r, s_r) a Gaussian process on r = (z − μ)/σ of the target's z."""

    prior: CopulaPrior
    residual: Layer
    z: Float[Tensor, "*b n"]
    report: FitReport

    def predict(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*b m"], Float[Tensor, "*b m"]]:
        """Mean and standard deviation of z at every row of X."""
        mu, sigma = self.prior.predict(X)
        mean, var = self.residual.predict_marginal(X)
        return mu + sigma * mean, sigma * var.sqrt()

    def log_expected_improvement(self, X: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b m"]:
        """log E[max(min z − z(x), 0)] = log sd + log(φ(u) + u Φ(u)) with u = (min z − mean)/sd."""
        if self.z.shape[-1] == 0:
            raise InputError("There is nothing to improve on: the target has no observation yet.")
        mean, sd = self.predict(X)
        u = (self.z.amin(-1, keepdim=True) - mean) / sd
        return sd.log() + _log_ei_helper(u)


@dataclass(frozen=True, kw_only=True, eq=False)
class GC3PPrior:
    """What the sources teach: the network. ``suggest`` is what to evaluate next."""

    model: GC3P
    sources: tuple[Dataset, ...]
    copula: CopulaPrior

    def condition(self, target: Dataset, *, seed: Seed = 0) -> CopulaPosterior:
        """The target's z and the process on its residuals, both found anew; ``seed`` is for the starts of the fit."""
        self._require(target)
        with torch.no_grad():
            z = to_normal_scores(target.y)
            mu, sigma = self.copula.predict(target.X)
            r, b, kernel = (z - mu) / sigma, target.batch_shape, self.model.kernel
            X_rows, r_rows = target.X.reshape(b.numel(), *target.X.shape[-2:]), r.reshape(b.numel(), target.n)
            evidence = GaussianEvidence(X_rows, r_rows, None, kernel=kernel, residual=False, free_offset=True)
            *others, noise = evidence.layout.slots
            evidence.layout = Layout((*others, replace(noise, lower=_NOISE_FLOOR)))
            theta, report = fit(evidence, self.model.fit, seed=seed, task="target", batch_shape=b)
            params = evidence.params(theta.reshape(b.numel(), -1), b)
            layer = Layer.observe(
                NoBeliefs(b), params, Dataset(target.X, r), kernel=kernel, propagation=Propagation.EXACT
            )
            return CopulaPosterior(self.copula, layer, z, report)

    def suggest(
        self, target: Dataset, candidates: Float[Tensor, "*b M d"], allowed: Bool[Tensor, "*b M"], *, seed: Seeds = 0
    ) -> Int[Tensor, "*b"]:
        """Which of the allowed candidates to evaluate next, one index per problem.

        For the first ``model.draws`` evaluations it is the least of independent draws from N(μ(x), σ(x)²), then the one
        of highest expected improvement on min z. The draws of a problem come from its own seed and the number of
        evaluations, so one set of seeds serves a whole run, and candidates appended as padding change nothing. For a
        continuous space the authors take 10,000 random candidates.
        """
        self._require(target)
        b, M = target.batch_shape, candidates.shape[-2]
        if candidates.shape != (*b, M, target.d) or allowed.shape != (*b, M) or not bool(allowed.any(-1).all()):
            raise InputError(
                f"candidates need shape {(*b, 'M', target.d)}, allowed {(*b, 'M')} with one of every problem true, but "
                f"the shapes are {tuple(candidates.shape)} and {tuple(allowed.shape)}, {allowed.sum(-1).tolist()} true."
            )
        chunks = candidates.split(_CHUNK, dim=-2)
        with torch.no_grad():
            if target.n < self.model.draws:
                mu, sigma = (torch.cat(parts, -1) for parts in zip(*map(self.copula.predict, chunks), strict=True))
                draw = partial(_normal_draws, M, target.n)
                score = -mu - sigma * _draws(draw, _generators(seed, b.numel()), mu.reshape(-1, M)).reshape(*b, M)
            else:
                posterior = self.condition(target)
                score = torch.cat([posterior.log_expected_improvement(chunk) for chunk in chunks], -1)
            return score.masked_fill(~allowed, -torch.inf).argmax(-1)

    def _require(self, target: Dataset) -> None:
        require_compatible(self.sources, target)
        if self.model.fit.unit_cube:
            require_unit_cube(target, "the target")


@dataclass(frozen=True, kw_only=True)
class GC3P:
    """The protocol: ``draws`` evaluations drawn from the network, then expected improvement."""

    draws: int = 5
    kernel: Kernel = Kernel.MATERN52
    fit: FitOptions = field(default_factory=FitOptions)
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        """Raise an ``InputError`` unless there is a draw to improve on."""
        if self.draws < 1:
            raise InputError(f"draws must be at least 1, for improvement needs an observation, but it is {self.draws}.")

    def learn(self, sources: Sequence[Dataset], *, seed: Seeds = 0) -> GC3PPrior:
        """The network of the pooled sources, each first brought to normal scores; none may have fewer than 2 points."""
        sources = tuple(sources)
        if not sources:
            raise InputError("GC3P needs at least one source, but sources is empty. Without any, use GPBO.")
        require_compatible(sources, None)
        for i, source in enumerate(sources):
            if source.n < 2:
                raise InputError(
                    f"{task_name(source, i)} has a single observation, but GC3P compares the values of a source with "
                    "each other and needs at least 2. Leave it out, or add to it."
                )
            if self.fit.unit_cube:
                require_unit_cube(source, task_name(source, i))
        how, b, d = self.training, sources[0].batch_shape, sources[0].d
        X = torch.cat([source.X for source in sources], dim=-2).reshape(b.numel(), -1, d)
        z = torch.cat([to_normal_scores(source.y) for source in sources], dim=-1).reshape(b.numel(), -1)
        centre = X.mean(-2)
        spread = spread_of(X.mT, centre)
        scale = torch.where(spread > 0, spread, torch.ones_like(spread))
        shapes = ((d, how.width), *[(how.width, how.width)] * how.depth, (how.width, 2))
        with single_thread(), torch.enable_grad():
            X = (X - centre.unsqueeze(-2)) / scale.unsqueeze(-2)
            theta = _train(X, z, shapes, how, _generators(seed, b.numel()))
        copula = CopulaPrior(theta.reshape(*b, -1), centre.reshape(*b, d), scale.reshape(*b, d), shapes)
        return GC3PPrior(model=self, sources=sources, copula=copula)
