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
	return text[:beginning(text, boot)], err
}

// Since is what a source has said since a boot began. An empty id: nothing.
func Since(dir, source, boot string) ([]byte, error) {
	text, err := read(dir, source)
	return text[beginning(text, boot):], err
}

// beginning is where in a source's words those of a boot begin; at their end where it has said nothing.
func beginning(text []byte, boot string) (at int) {
	for line := range bytes.Lines(text) {
		if b, ok := headed(line); ok && b.ID == boot {
			break
		}
		at += len(line)
	}
	return at
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
	said := map[string][]byte{Agent: last.text}
	for _, source := range sources {
		if source != Agent {
			said[source] = d.saidIn(f.Boot, source)
		}
	}
	var end time.Time
	for _, text := range said {
		if t := lastTime(text); t.After(end) {
			end = t
		}
	}
	f.add(Agent, telling(said[Agent], agentLines, end))
	for _, source := range sources {
		if source != Agent {
			f.add(source, telling(said[source], 0, end))
		}
	}
	return f
}

// longBefore: a line was said so long before the end that it is about something else.
func longBefore(line string, end time.Time) bool {
	t := timeOf(plain(line), time.Now())
	return !t.IsZero() && t.Before(end.Add(-tellingTime))
}

// lastTime is the time of the last line that has one; zero: none has.
func lastTime(text []byte) time.Time {
	lines := bytes.Split(text, []byte("\n"))
	for _, line := range slices.Backward(lines[max(0, len(lines)-linesWithTime):]) {
		if t := timeOf(plain(string(line)), time.Now()); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// timeOf reads the time that slog, zap (as plain has it) or klog put in front of a line; zero: there is none. klog
// leaves the year out: it is the last in which the time is not after now.
func timeOf(line string, now time.Time) time.Time {
	word, rest, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700"} { // zap's own has no colon in its zone
		if t, err := time.Parse(layout, word); err == nil {
			return t
		}
	}
	clock, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if len(word) != len("I0102") {
		return time.Time{}
	}
	t, err := time.Parse("0102 15:04:05", word[1:]+" "+clock)
	if err != nil {
		return time.Time{}
	}
	if t = t.AddDate(now.UTC().Year(), 0, 0); t.After(now.Add(time.Hour)) {
		t = t.AddDate(-1, 0, 0)
	}
	return t
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

func (f *Former) add(source string, lines []string) {
	if len(lines) > 0 {
		f.Excerpts = append(f.Excerpts, Excerpt{source, lines})
	}
}

const (
	// agentLines are the last of the agent's, whatever they say: they tell what it was at.
	agentLines = 3
	// tellingLines are the last of a source that matter.
	tellingLines = 3
	// tellingTime is how long before the last word of all something was said that may be about the end.
	tellingTime = time.Minute
	// linesWithTime is how many lines before its end a log has one with a time: the stacks of a crash have none.
	linesWithTime = 2000
)

// telling picks the last lines that say what went wrong: warnings, errors, and of a crash the line that begins it, as
// far as they were said shortly before the end. Of those that differ in numbers alone it takes the last. The latest
// lines are taken whatever they say, and whenever.
func telling(text []byte, latest int, end time.Time) []string {
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
		if (begins || !crashed && priority <= '4') && !longBefore(line, end) {
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
