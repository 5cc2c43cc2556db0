"""Tune a task with the head start of a study that was run on a related one."""

import optuna
import optunahub


def objective(trial: optuna.Trial, shift: float) -> float:
    """Stands for a training run: two tasks with different shifts resemble each other."""
    x = trial.suggest_float("x", -5, 5)
    lr = trial.suggest_float("lr", 1e-4, 1, log=True)
    return (x - 1 - shift) ** 2 + (lr - 0.01) ** 2


if __name__ == "__main__":
    past = optuna.create_study(study_name="last year")
    past.optimize(lambda trial: objective(trial, shift=0.0), n_trials=50)

    module = optunahub.load_module(package="samplers/headstart_transfer")
    sampler = module.TransferSampler(sources=[past])
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: objective(trial, shift=0.3), n_trials=10)
    print(study.best_params)
    print(sampler.explain())
