package lastwords

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/quorate/quorate/internal/asynclog"
)

// Agent is the source of the agent's own words, by which a boot is known.
const Agent = "agent"

const (
	// mark begins the lines that are the keeper's own.
	mark = "=== quorate: "
	// Ended is the agent's last line where it was asked to end.
	Ended = mark + "ended in order\n"
)

// heading begins the words of a boot, of an agent, and of a file.
func (b Boot) heading(now time.Time) string {
	return fmt.Sprintf("%sboot %s instance %s at %s\n", mark, b.ID, b.Instance, now.UTC().Format(time.RFC3339))
}

// headed reads a heading.
func headed(line []byte) (b Boot, ok bool) {
	var at string
	n, _ := fmt.Sscanf(string(line), mark+"boot %s instance %s at %s", &b.ID, &b.Instance, &at)
	return b, n == 3
}

// Former is how the boot before this one ended, as its words say.
type Former struct {
	// Boot is the zero value where the disk has words of none.
	Boot Boot
	// InOrder: its agent was asked to end.
	InOrder bool
	// Excerpts are of the sources that have something to say, the agent first.
	Excerpts []Excerpt
}

// Excerpt are a few lines of a source.
type Excerpt struct {
	Source string
	Lines  []string
}

// section is what was said in one boot.
type section struct {
	boot Boot
	text []byte
}

// sections divides words at the headings. What stands before the first has no boot.
func sections(text []byte) (out []section) {
	for line := range bytes.Lines(text) {
		b, isHeading := headed(line)
		switch last := len(out) - 1; {
		case isHeading && (last < 0 || out[last].boot != b):
			out = append(out, section{boot: b})
		case isHeading:
		case last < 0:
			out = append(out, section{text: line})
		default:
			out[last].text = append(out[last].text, line...)
		}
	}
	return out
}

// Before is what a source has said before a boot began. An empty id: all of it.
func Before(dir, source, boot string) ([]byte, error) {
	text, err := read(dir, source)
	if err != nil || boot == "" {
		return text, err
	}
	at := 0
	for line := range bytes.Lines(text) {
		if b, ok := headed(line); ok && b.ID == boot {
			return text[:at], nil
		}
		at += len(line)
	}
	return text, nil
}

// former reads what an earlier boot left, for the first agent of this one. What cannot be read was not said.
func (d *disk) former() (f Former) {
	sources, _ := Sources(d.Dir)
	sources = d.forgetOldest(sources)
	text, err := read(d.Dir, Agent)
	list := sections(text)
	if err != nil || len(list) == 0 {
		return f
	}
	last := list[len(list)-1]
	if last.boot.ID == d.Boot.ID {
		return f
	}
	f.Boot, f.InOrder = last.boot, bytes.HasSuffix(last.text, []byte(Ended))
	f.add(Agent, last.text, agentLines)
	for _, source := range sources {
		if source != Agent {
			f.add(source, d.saidIn(f.Boot, source), 0)
		}
	}
	return f
}

// saidIn is what a source said in a boot.
func (d *disk) saidIn(b Boot, source string) []byte {
	text, _ := read(d.Dir, source)
	for _, s := range sections(text) {
		if s.boot == b {
			return s.text
		}
	}
	return nil
}

func (f *Former) add(source string, text []byte, latest int) {
	if lines := telling(text, latest); len(lines) > 0 {
		f.Excerpts = append(f.Excerpts, Excerpt{source, lines})
	}
}

const (
	// agentLines are the last of the agent's, whatever they say: they tell what it was at.
	agentLines = 3
	// tellingLines are the last of a source that matter.
	tellingLines = 3
)

// telling picks the last lines that say what went wrong: warnings, errors, and of a crash the line that begins it. Of
// those that differ in numbers alone it takes the last. The latest lines are taken whatever they say.
func telling(text []byte, latest int) []string {
	text = bytes.ReplaceAll(text, []byte{0}, nil) // what a power cut may leave
	var levels asynclog.Leveler
	marked := append(levels.Add(text), levels.Last()...)
	var all []string
	var matters []int
	crashed := false
	for line := range bytes.Lines(marked) {
		priority, line := line[1], strings.TrimSpace(string(line[3:]))
		if line == "" || strings.HasPrefix(line, mark) {
			continue
		}
		begins := asynclog.BeginsCrash(line)
		crashed = begins || crashed && priority == '2'
		if begins || !crashed && priority <= '4' {
			matters = append(matters, len(all))
		}
		all = append(all, line)
	}
	return pick(all, lastAlike(all, matters), latest)
}

// lastAlike drops the lines that a later one repeats with other numbers.
func lastAlike(all []string, which []int) (out []int) {
	seen := map[string]bool{}
	for _, n := range slices.Backward(which) {
		shape := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, all[n])
		if !seen[shape] {
			out = append(out, n)
		}
		seen[shape] = true
	}
	slices.Reverse(out)
	return out
}

// pick takes the last that matter and the latest, in their order.
func pick(all []string, matters []int, latest int) (out []string) {
	matters = matters[max(0, len(matters)-tellingLines):]
	for n, line := range all {
		if n >= len(all)-latest || slices.Contains(matters, n) {
			out = append(out, plain(line))
		}
	}
	return out
}

// plain is what a line says that is JSON, as etcd writes it: its time, level, message and error. Any other line is
// itself.
func plain(line string) string {
	var m struct{ TS, Level, Msg, Error string }
	if json.Unmarshal([]byte(line), &m) != nil || m.Msg == "" {
		return line
	}
	if m.Error != "" {
		m.Msg += ": " + m.Error
	}
	return strings.TrimSpace(m.TS + " " + m.Level + " " + m.Msg)
}
