package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/fault"
	"github.com/quorate/quorate/cmd/quorate/version"
	"github.com/quorate/quorate/internal/durable"
)

// manWidth is what fits into a terminal of 80 columns, with the indent of a section.
const manWidth = 72

// newMan writes manual pages. It is hidden: `make man` calls it.
func newMan() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write the manual pages of all commands into a folder", Hidden: true,
		Args: command.Exactly("DIR"),
		Long: "Write the manual pages of all commands into a folder: quorate.1, quorate-health.1 and so on.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fault.AtFile(err)
			}
			return writePages(cmd.Root(), args[0])
		}}
}

// writePages writes the page of a command and of those below it.
func writePages(cmd *cobra.Command, dir string) error {
	file := filepath.Join(dir, pageName(cmd)+".1")
	if err := durable.WriteFile(file, []byte(page(cmd)), 0o644); err != nil {
		return fault.AtFile(err)
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is a command's manual page in the macros of man(7).
func page(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"quorate %s\" \"quorate\"\n", strings.ToUpper(roff(pageName(cmd))),
		roff(version.Current().Quorate))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(pageName(cmd)), roff(cmd.Short),
		roff(cmd.UseLine()))
	if cmd.Long != "" {
		fmt.Fprint(&b, ".SH DESCRIPTION\n"+paragraphs(cmd.Long))
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(&b, ".SH OPTIONS\n.nf\n%s\n.fi\n",
			roff(command.TrimmedLines(cmd.LocalFlags().FlagUsagesWrapped(manWidth))))
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	fmt.Fprint(&b, ".SH EXIT STATUS\n0: done. Otherwise see docs/runbook.md, Exit codes of quorate.\n")
	var other []string
	if cmd.HasParent() {
		other = append(other, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			other = append(other, pageName(c))
		}
	}
	for n, name := range other {
		other[n] = `\fB` + roff(name) + `\fR(1)`
	}
	if len(other) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(other, ", "))
	}
	return b.String()
}

// paragraphs keeps lines that are indented as they are.
func paragraphs(text string) string {
	var b strings.Builder
	for _, p := range strings.Split(text, "\n\n") {
		if strings.HasPrefix(p, " ") {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(p))
			continue
		}
		fmt.Fprintf(&b, ".PP\n%s\n", roff(p))
	}
	return b.String()
}

// roff is a text whose characters mean themselves.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for n, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[n] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
