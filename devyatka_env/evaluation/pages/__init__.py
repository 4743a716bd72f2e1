"""Reports: one page with everything that is known of a checkpoint, a run or a bot."""
