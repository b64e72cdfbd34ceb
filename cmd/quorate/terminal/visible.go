// Package terminal asks and tells the person in front of quorate: texts, tables and structured output, without what a
// terminal would obey; the questions that are answered with a word, and the passphrase.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible is a text whose control characters, ANSI sequences and directional marks are spelled out. Names and reasons
// come out of the record, and whoever may write there could move the cursor, hide a line or retitle a terminal. Line
// breaks and tabs are escaped as well: in a cell they would pass for another row.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		writeVisible(&b, r, s[:size])
		s = s[size:]
	}
	return b.String()
}

// hidden reports whether a terminal shows something else than the character itself.
func hidden(r rune) bool { return !unicode.IsPrint(r) }

// writeVisible writes a character, or the escape that JSON and YAML have for it.
func writeVisible(b *strings.Builder, r rune, encoded string) {
	switch {
	case r == utf8.RuneError && len(encoded) == 1:
		fmt.Fprintf(b, `\x%02x`, encoded[0])
	case !hidden(r):
		b.WriteString(encoded)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// VisibleWriter stands before the terminal, whatever a command prints: it passes on line breaks and tabs, which our own
// texts have, and spells out what is hidden.
type VisibleWriter struct {
	To io.Writer
	// rest is the begin of a character whose end comes with the next write.
	rest string
}

// Write implements io.Writer.
func (v *VisibleWriter) Write(p []byte) (int, error) {
	text := v.rest + string(p)
	v.rest = ""
	var b strings.Builder
	for len(text) > 0 {
		if !utf8.FullRuneInString(text) {
			v.rest = text
			break
		}
		r, size := utf8.DecodeRuneInString(text)
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			writeVisible(&b, r, text[:size])
		}
		text = text[size:]
	}
	if _, err := io.WriteString(v.To, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the begin of a character that never ended. The stream stays open.
func (v *VisibleWriter) Close() error {
	if v.rest == "" {
		return nil // even a write of nothing waits behind one that hangs
	}
	_, err := io.WriteString(v.To, Visible(v.rest))
	v.rest = ""
	return err
}
