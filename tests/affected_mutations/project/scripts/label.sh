printf 'Label for %s from %s' "$1" "$(cat data/lost.txt)"
