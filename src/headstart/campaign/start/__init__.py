"""The beginning of a campaign, part by part."""
