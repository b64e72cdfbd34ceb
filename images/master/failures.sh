# A script that ends because a command failed says which, by its line and exit code: the command itself may have said nothing. Sourced.
set -E
trap 'echo "$0: line $LINENO: exit code $? of: $BASH_COMMAND" >&2' ERR
