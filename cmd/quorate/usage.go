package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// commandGroups are the headings of `quorate --help`. A command that is in none of them stands below the last one.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"observe", "How is it, what happened:", []string{"health", "status", "events", "why", "etcd", "support"}},
	{"set-up", "Set up a cluster:", []string{"config", "gce", "record"}},
	{"fleet", "Make and delete its masters' VMs:", []string{"create", "add", "remove", "replace", "roll", "list",
		"delete"}},
	{"operate", "Change a cluster that runs:", []string{"pause", "resume", "orders", "override"}},
	{"keys", "Access, keys, add-ons:", []string{"kubeconfig", "token", "bundle", "addons"}},
	{"restore", "Save and restore:", []string{"snapshot", "restore"}},
	{"program", "This program:", []string{"agent", "version", "completion"}},
}

// arrange puts the root's commands into their groups, and gives all commands one form of usage.
func arrange(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, name := range g.commands {
			for _, c := range root.Commands() {
				if c.Name() == name {
					c.GroupID = g.id
				}
			}
		}
	}
	root.SetCompletionCommandGroupID("program")
	completeNoFiles(root)
	root.SetUsageFunc(showUsage)
}

// completeNoFiles keeps the shell from offering files to commands that take no argument.
func completeNoFiles(cmd *cobra.Command) {
	if !strings.Contains(cmd.Use, " ") && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, c := range cmd.Commands() {
		completeNoFiles(c)
	}
}

// showUsage prints how a command is called, what is below it, and its flags. It is cobra's own, in lines that fit on a
// screen.
func showUsage(cmd *cobra.Command) error {
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
		fmt.Fprintf(w, "\nFlags:\n%s\n", trimmedLines(cmd.LocalFlags().FlagUsagesWrapped(lineWidth)))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nGlobal flags:\n%s\n", trimmedLines(cmd.InheritedFlags().FlagUsagesWrapped(lineWidth)))
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
		printText(&b, strings.Repeat(" ", width+4), c.Short)
		text := strings.TrimRight(b.String(), "\n")
		fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name(), text[min(len(text), width+4):])
	}
}

func trimmedLines(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimRight(line, " \n"))
	}
	return strings.Join(out, "\n")
}

// columns is the width of a line.
func columns(line string) int { return utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) }
