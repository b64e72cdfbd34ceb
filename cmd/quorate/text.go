package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// lineWidth is where long texts are broken: what fits next to other things on a screen.
const lineWidth = 100

// row is one line of a table, with a text below it that may be long.
type row struct {
	cells []string
	below string
}

// printTable prints an empty line and a table whose columns are as wide as what stands in them. Without rows it prints
// nothing.
func printTable(w io.Writer, head []string, rows []row) {
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(head))
	for _, r := range append([]row{{cells: head}}, rows...) {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(visible(cell)))
		}
	}
	fmt.Fprintln(w)
	printCells(w, head, widths)
	for _, r := range rows {
		printCells(w, r.cells, widths)
		printText(w, "    ", r.below)
	}
}

func printCells(w io.Writer, cells []string, widths []int) {
	var b strings.Builder
	for i, cell := range cells {
		cell = visible(cell)
		b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// printText prints a text broken at spaces, each line with the indent; a word that is longer than a line stays whole.
func printText(w io.Writer, indent, text string) {
	for paragraph := range strings.Lines(text) {
		line := indent
		for _, word := range strings.Fields(paragraph) {
			word = visible(word)
			if line != indent && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > lineWidth {
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

// wrapped is a text broken as printText does.
func wrapped(text string) string {
	var b strings.Builder
	printText(&b, "", text)
	return strings.TrimSuffix(b.String(), "\n")
}

// reflowed is a text whose paragraphs are broken anew. A line that is indented, such as a command, stays as it is.
func reflowed(text string) string {
	var out []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		if !strings.HasPrefix(paragraph, " ") {
			paragraph = wrapped(strings.ReplaceAll(paragraph, "\n", " "))
		}
		out = append(out, paragraph)
	}
	return strings.Join(out, "\n\n")
}

// age is how long ago something was, in its two largest units.
func age(now, then time.Time) string {
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

// when spells a time with its zone, for tables that span months.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
