package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentd/agentd/internal/cli"
)

// arguments checks the arguments of a command, by name: the first least of them are
// required. One whose name ends in … may be repeated. Cobra's own checks only count.
func arguments(least int, names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		repeated := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…")
		switch {
		case len(args) < least:
			return cli.Usage("the argument <%s> is missing", strings.TrimSuffix(names[len(args)], "…"))
		case len(args) > len(names) && !repeated:
			return cli.Usage("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// unknownCommand is the error for a word that is none of a group's commands.
func unknownCommand(group *cobra.Command, word string) error {
	hint := ""
	if near := group.SuggestionsFor(word); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return cli.Usage("unknown command %q for %q%s", word, group.CommandPath(), hint)
}
