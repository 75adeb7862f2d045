"""Scheduling: how far operators may go, who is asked, how much goes through queues."""
