"""What the commands do, below the command line and above the engines; a file for each; `plan` is with the checkpoint.

Law: where JSON is asked for, standard output has that and nothing else; what there is to say beside results goes to
standard error. A command ends with an exit code of `eventide.commands.process`, never with a traceback.
"""
