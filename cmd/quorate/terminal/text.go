package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// LineWidth is where long texts are broken: what fits next to other things on a screen.
const LineWidth = 100

// Row is one line of a table, with a text below it that may be long.
type Row struct {
	Cells []string
	Below string
	// Tones are those of cells, by column.
	Tones map[int]Tone
}

// PrintTableBelow prints a table below other text: an empty line first. Without rows it prints nothing.
func PrintTableBelow(w io.Writer, head []string, rows []Row) {
	if len(rows) > 0 {
		fmt.Fprintln(w)
	}
	PrintTable(w, head, rows)
}

// PrintTable prints a table whose columns are as wide as what stands in them. Without rows it prints nothing.
func PrintTable(w io.Writer, head []string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(head))
	for _, r := range append([]Row{{Cells: head}}, rows...) {
		for i, cell := range r.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(Visible(cell)))
		}
	}
	printCells(w, Row{Cells: head}, widths)
	for _, r := range rows {
		printCells(w, r, widths)
		PrintText(w, "    ", r.Below)
	}
}

func printCells(w io.Writer, r Row, widths []int) {
	gap := 0 // before the next cell that is not empty: a line does not end with spaces
	for i, cell := range r.Cells {
		if cell = Visible(cell); cell != "" {
			fmt.Fprint(w, strings.Repeat(" ", gap))
			Paint(w, r.Tones[i], cell)
			gap = 0
		}
		gap += widths[i] - utf8.RuneCountInString(cell) + 2
	}
	fmt.Fprintln(w)
}

// PrintText prints a text broken at spaces, each line with the indent; a word that is longer than a line stays whole.
func PrintText(w io.Writer, indent, text string) {
	for paragraph := range strings.Lines(text) {
		line := indent
		for _, word := range strings.Fields(paragraph) {
			word = Visible(word)
			if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > LineWidth {
				fmt.Fprintln(w, line)
				line = indent
			}
			if line != indent {
				line += " "
			}
			line += word
		}
		if line != indent {
			fmt.Fprintln(w, line)
		}
	}
}

// PaintText prints a text as PrintText does, in the color of its tone.
func PaintText(w io.Writer, tone Tone, text string) {
	if text = Wrapped(text); text != "" {
		Paint(w, tone, text)
		fmt.Fprintln(w)
	}
}

// Wrapped is a text broken as PrintText does.
func Wrapped(text string) string {
	var b strings.Builder
	PrintText(&b, "", text)
	return strings.TrimSuffix(b.String(), "\n")
}

// Reflowed is a text whose paragraphs are broken anew. A line that is indented, such as a command, stays as it is.
func Reflowed(text string) string {
	var out []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		if !strings.HasPrefix(paragraph, " ") {
			paragraph = Wrapped(strings.ReplaceAll(paragraph, "\n", " "))
		}
		out = append(out, paragraph)
	}
	return strings.Join(out, "\n\n")
}

// Age is how long ago something was, in its two largest units.
func Age(now, then time.Time) string {
	d := max(0, now.Sub(then)).Truncate(time.Second)
	day := 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// When spells a time with its zone, for tables that span months.
func When(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// OrNone is a text, or the dash that a table has where there is none.
func OrNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Mebibytes spells a size for people.
func Mebibytes(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
	case n < 100<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
