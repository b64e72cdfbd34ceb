package terminal

import (
	"bufio"
	"io"
	"os"

	"golang.org/x/term"
)

// Tone is how good or bad a text is, which a terminal shows by its color.
type Tone int

// The tones. A text without one has the terminal's own color.
const (
	NoTone Tone = iota
	Good
	Warn
	Bad
)

// codes are what makes a terminal change its color.
var codes = term.NewTerminal(nil, "").Escape

func (t Tone) code() []byte {
	switch t {
	case Good:
		return codes.Green
	case Warn:
		return codes.Yellow
	case Bad:
		return codes.Red
	}
	return nil
}

// Paint writes a text in the color of its tone where w ends at a terminal that has colors, and as it is elsewhere. The
// text itself stays a text: what is hidden in it is spelled out, so nothing out of the record can set a color.
func Paint(w io.Writer, tone Tone, text string) {
	if p, ok := w.(painter); ok && tone != NoTone {
		p.paint(tone, text)
		return
	}
	_, _ = io.WriteString(w, text) // what fails once fails with the next write, too: PrintAs says so
}

// painter is a writer that may end at a terminal with colors.
type painter interface {
	io.Writer
	paint(tone Tone, text string)
}

// paint implements painter.
func (v *VisibleWriter) paint(tone Tone, text string) {
	colored := v.hasColors()
	if colored {
		_, _ = v.To.Write(tone.code())
	}
	_, _ = io.WriteString(v, text)
	if colored {
		_, _ = v.To.Write(codes.Reset)
	}
}

// hasColors: a person sees it, on a terminal that knows colors, and has not declined them (https://no-color.org).
func (v *VisibleWriter) hasColors() bool { return v.moves() && os.Getenv("NO_COLOR") == "" }

// moves: it is a terminal on which more can be done than to write the next line.
func (v *VisibleWriter) moves() bool {
	f, ok := v.To.(*os.File)
	return ok && isTerminal(f) && os.Getenv("TERM") != "dumb"
}

// page is what PrintAs gathers before it is written.
type page struct {
	*bufio.Writer
	to painter
}

// paint implements painter.
func (p page) paint(tone Tone, text string) {
	if p.Flush() == nil {
		p.to.paint(tone, text)
	}
}

// newPage gathers what is written to w. Only where w has colors are there writes before its end.
func newPage(w io.Writer) (io.Writer, func() error) {
	buffered := bufio.NewWriter(w)
	if v, ok := w.(*VisibleWriter); ok && v.hasColors() {
		return page{buffered, v}, buffered.Flush
	}
	return buffered, buffered.Flush
}
