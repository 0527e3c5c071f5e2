"""What another policy would have earned: estimates with intervals, from the log of the policy that decided."""
