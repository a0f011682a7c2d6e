# Completion of hearth for fish; what there is comes from --help.
function __hearth_words
    set -l words (commandline -opc)
    if test (count $words) -eq 1
        hearth --help 2>/dev/null | string match -rg '^  ([a-z-]+) '
    else
        hearth $words[2] --help 2>/dev/null | string match -rag '(--[a-z][a-z-]*)' | sort -u
    end
end
complete -c hearth -a '(__hearth_words)'
