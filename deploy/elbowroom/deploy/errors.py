"""What can be wrong with a command, as opposed to a bug of ours."""


class UserError(Exception):
    """The command could not be carried out: one line for the person at the terminal, exit code 2."""
