// Package command has what quorate's commands have in common: groups, the words and flags that they take, what a shell
// completes, and their help.
package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/internal/replica"
)

// Group holds commands. By itself it prints its help; a word that is none of its commands is a mistake.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknown(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// unknown is the error of a word that is none of a group's commands.
func unknown(group *cobra.Command, word string) error {
	text := fmt.Sprintf("there is no command %q", group.CommandPath()+" "+word)
	if near := meant(group, word); near != "" {
		text += fmt.Sprintf("; did you mean %q?", group.CommandPath()+" "+near)
	}
	return fault.Usage("%s (see %s --help)", text, group.CommandPath())
}

// meant is the command that a word may stand for: one that it begins, before one that has nearly its letters; empty:
// none.
func meant(group *cobra.Command, word string) string {
	group.SuggestionsMinimumDistance = 2
	found := group.SuggestionsFor(word)
	begun := slices.DeleteFunc(slices.Clone(found), func(name string) bool {
		return !strings.HasPrefix(name, strings.ToLower(word))
	})
	if len(found) == 0 {
		return ""
	}
	return slices.Concat(begun, replica.Near(word, found), found)[0]
}

// NoArguments is for commands that need nothing but their flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fault.Usage("%s takes no argument, but %q is given (see %s --help)", cmd.CommandPath(), args[0],
		cmd.CommandPath())
}

// SomeFiles is for commands that read at least one file.
func SomeFiles(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return fault.Usage("%s needs a file (usage: %s)", cmd.CommandPath(), cmd.UseLine())
}

// Needed names every flag of those that is not given, or is blank, with what it means.
func Needed(cmd *cobra.Command, names ...string) error {
	var text string
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); strings.TrimSpace(f.Value.String()) == "" {
			if text != "" {
				text += "\n"
			}
			text += fmt.Sprintf("--%s is needed: %s", name, f.Usage)
		}
	}
	if text == "" {
		return nil
	}
	return fault.Usage("%s", text)
}

// Exactly is for commands whose arguments have names.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return fault.Usage("%s needs %s, and got %s (usage: %s)",
			cmd.CommandPath(), strings.Join(names, " and "), Counted(len(args)), cmd.UseLine())
	}
}

// Counted spells a number of arguments.
func Counted(arguments int) string {
	switch arguments {
	case 0:
		return "no argument"
	case 1:
		return "one argument"
	}
	return fmt.Sprintf("%d arguments", arguments)
}

// FlagFault is a flag that is not known, or its value. A flag of this package says itself what is allowed. Of a group
// that is asked for a word which it does not have, the word is what is wrong.
func FlagFault(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
		return cmd.ValidateArgs(words)
	}
	if refused := (momentError{}); errors.As(err, &refused) {
		return fault.Usage("%w", refused)
	}
	return fault.Usage("%w (see %s --help)", err, cmd.CommandPath())
}
