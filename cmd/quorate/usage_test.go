package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// everyCommand calls do with each command of the tree, also with those that cobra adds by itself.
func everyCommand(t *testing.T, do func(cmd *cobra.Command)) {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	var walk func(cmd *cobra.Command)
	seen := 0
	walk = func(cmd *cobra.Command) {
		seen++
		do(cmd)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	if seen < 40 {
		t.Errorf("saw only %d commands", seen)
	}
}

func TestHelpFitsOnAScreen(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command) {
		var b strings.Builder
		cmd.SetOut(&b)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		if cmd.HasParent() && cmd.Parent().Name() == "completion" {
			return // cobra's own texts
		}
		for line := range strings.Lines(b.String()) {
			if width := columns(line); width > terminal.LineWidth {
				t.Errorf("%s --help: a line of %d columns, more than %d: %s", cmd.CommandPath(), width,
					terminal.LineWidth, line)
			}
			if strings.HasSuffix(line, " \n") {
				t.Errorf("%s --help: a line ends with a space: %q", cmd.CommandPath(), line)
			}
		}
		if strings.Contains(b.String(), "unknown help topic") || cmd.Short == "" {
			t.Errorf("%s has no help", cmd.CommandPath())
		}
	})
}

func TestEveryCommandIsInAGroup(t *testing.T) {
	root := newRoot()
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.GroupID == "" {
			t.Errorf("quorate %s is in no group: main.go", c.Name())
		}
	}
}

// columns is the width of a line.
func columns(line string) int { return utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) }
