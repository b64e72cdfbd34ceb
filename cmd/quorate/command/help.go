package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// ReflowHelp breaks the help texts of a command and of those below it for a screen.
func ReflowHelp(cmd *cobra.Command) {
	cmd.Long = terminal.Reflowed(cmd.Long)
	for _, c := range cmd.Commands() {
		ReflowHelp(c)
	}
}

// Help is cobra's help command, but that a command which does not exist is a mistake and not an answer.
func Help() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Say what a command does", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return fault.Usage("%w (see quorate --help)", err)
			case len(rest) > 0 && about.HasAvailableSubCommands():
				return unknown(about, rest[0])
			case len(rest) > 0:
				return fault.Usage("%q has no commands below it, such as %q (see %s --help)", about.CommandPath(), rest[0],
					about.CommandPath())
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// CompleteNoFiles keeps the shell from offering files to commands that take no argument.
func CompleteNoFiles(cmd *cobra.Command) {
	if !strings.Contains(cmd.Use, " ") && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, c := range cmd.Commands() {
		CompleteNoFiles(c)
	}
}

// ShowUsage prints how a command is called, what is below it, and its flags. It is cobra's own, in lines that fit on a
// screen.
func ShowUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprint(w, "Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, g := range cmd.Groups() {
		showCommands(w, g.Title, cmd, g.ID)
	}
	showCommands(w, "Available Commands:", cmd, "")
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s\n", TrimmedLines(cmd.LocalFlags().FlagUsagesWrapped(terminal.LineWidth)))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nGlobal flags:\n%s\n",
			TrimmedLines(cmd.InheritedFlags().FlagUsagesWrapped(terminal.LineWidth)))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nMore about a command: %s COMMAND --help\n", cmd.CommandPath())
	}
	return nil
}

// showCommands prints the commands of a group, each with what it does, broken below itself.
func showCommands(w io.Writer, heading string, cmd *cobra.Command, group string) {
	width, shown := 0, []*cobra.Command{}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		width = max(width, len(c.Name())) // of all groups alike
		if c.GroupID == group {
			shown = append(shown, c)
		}
	}
	if len(shown) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", heading)
	for _, c := range shown {
		var b strings.Builder
		terminal.PrintText(&b, strings.Repeat(" ", width+4), c.Short)
		text := strings.TrimRight(b.String(), "\n")
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name(), text[min(len(text), width+4):])
	}
}

// TrimmedLines is a text whose lines end without spaces.
func TrimmedLines(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimRight(line, " \n"))
	}
	return strings.Join(out, "\n")
}
