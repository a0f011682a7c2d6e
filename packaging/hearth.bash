# Completion of hearth for bash. Commands and options come from --help, so that
# they are those of the program that is installed.
_hearth() {
  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  local commands
  if ((COMP_CWORD == 1)); then
    commands=$(hearth --help 2>/dev/null |
      sed -n '/^Subcommands:/,$ s/^  \([a-z-]*\) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
    return
  fi
  if [[ $command == cache || $command == bench ]] && ((COMP_CWORD == 2)); then
    commands=$(hearth "$command" --help 2>/dev/null |
      sed -n '/^Subcommands:/,$ s/^  \([a-z-]*\) .*/\1/p')
  fi
  if [[ $current == -* ]]; then
    local words=("$command")
    if [[ $command == cache || $command == bench ]]; then
      [[ ${COMP_WORDS[2]} == -* ]] || words+=("${COMP_WORDS[2]}")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$(hearth "${words[@]}" --help 2>/dev/null |
      grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$current")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "${commands:-}" -- "$current"
    compgen -f -- "$current")
}
complete -o filenames -F _hearth hearth
