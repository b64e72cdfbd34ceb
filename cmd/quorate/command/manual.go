package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// manWidth is what fits into a terminal of 80 columns, with the indent of a section.
const manWidth = 72

// PageName is what a command's manual page is called.
func PageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// ManualPage is a command's page in the macros of man(7). version is the program's.
func ManualPage(cmd *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"quorate %s\" \"quorate\"\n", strings.ToUpper(roff(PageName(cmd))),
		roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(PageName(cmd)), roff(cmd.Short),
		roff(cmd.UseLine()))
	if cmd.Long != "" {
		fmt.Fprint(&b, ".SH DESCRIPTION\n"+paragraphs(cmd.Long))
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(&b, ".SH OPTIONS\n.nf\n%s\n.fi\n",
			roff(TrimmedLines(cmd.LocalFlags().FlagUsagesWrapped(manWidth))))
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	fmt.Fprint(&b, ".SH EXIT STATUS\n0: done. Otherwise see docs/runbook.md, Exit codes of quorate.\n")
	var other []string
	if cmd.HasParent() {
		other = append(other, PageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			other = append(other, PageName(c))
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
