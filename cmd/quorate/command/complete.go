package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// completionTimeout bounds what the record is asked for while somebody has pressed Tab.
const completionTimeout = 3 * time.Second

// Completing completes a command's first argument with what list says, and nothing else. It is silent where list fails:
// whoever runs the command is told why.
func Completing(list func(ctx context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(args) > 0 {
			return nil, only
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		found, err := list(ctx)
		if err != nil {
			return nil, only
		}
		// What stands behind a tab is shown next to the word. Both come from the record, see visible.
		var out []string
		for _, c := range found {
			word, about, _ := strings.Cut(c, "\t")
			if terminal.Visible(word) == word {
				out = append(out, word+"\t"+terminal.Visible(about))
			}
		}
		return out, only
	}
}

// CompleteFlag completes the value of a flag.
func CompleteFlag(cmd *cobra.Command, flag string, list func(ctx context.Context) ([]string, error)) {
	complete := Completing(list)
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc(flag,
		func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return complete(cmd, nil, typed)
		}))
}

// Fixed completes with the same words at any time.
func Fixed(list ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return slices.Clone(list), nil }
}
