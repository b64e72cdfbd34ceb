package terminal

import (
	"fmt"
	"io"
	"time"
)

// countdownPeriod is the time between two lines of a countdown that nobody sees on a terminal.
const countdownPeriod = 10 * time.Second

// Countdown is one line that changes with time: written over on a terminal, and elsewhere a line each countdownPeriod.
type Countdown struct {
	Out     io.Writer
	printed time.Time // when the last line was printed, where there is no terminal
	open    bool      // the terminal's line has no end yet
}

// Show shows the line as it is now.
func (c *Countdown) Show(now time.Time, line string) {
	if v, ok := c.Out.(*VisibleWriter); ok && v.overwrite(line) {
		c.open = true
		return
	}
	if now.Sub(c.printed) >= countdownPeriod {
		fmt.Fprintln(c.Out, Visible(line))
		c.printed = now
	}
}

// End ends the line. It may be called more than once.
func (c *Countdown) End() {
	if c.open {
		fmt.Fprintln(c.Out)
	}
	c.open = false
}

// overwrite writes a line over the one in which the cursor is; false: this is no terminal, and nothing was written. A
// terminal that is narrower than the line shows more than one of it, which is not worth asking for its width.
func (v *VisibleWriter) overwrite(line string) bool {
	if !v.moves() {
		return false
	}
	_, err := io.WriteString(v.To, "\r\x1b[K"+Visible(line))
	return err == nil
}
