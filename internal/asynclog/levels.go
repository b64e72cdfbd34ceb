package asynclog

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// priority is how much a line matters, in syslog's numbers.
type priority byte

const (
	critical priority = '2'
	failure  priority = '3'
	warning  priority = '4'
	info     priority = '6'
	verbose  priority = '7'
)

// longestLine is where an unfinished line is handed on without its end. journald cuts at 48 KiB by default.
const longestLine = 64 << 10

// Leveler puts a priority in front of each line, as sd-daemon(3) spells it, so that `journalctl -p warning` finds what
// matters. It takes output in pieces of any size. One goroutine at a time uses it.
type Leveler struct {
	rest    []byte // a line whose end has not come yet
	crashed bool   // a Go program has begun to say why it dies: the stacks that follow belong to that
}

// Add takes a piece and returns the lines that are whole by now.
func (l *Leveler) Add(piece []byte) []byte {
	l.rest = append(l.rest, piece...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 && len(l.rest) >= longestLine {
		end = len(l.rest)
	}
	whole := l.mark(l.rest[:end])
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return whole
}

// Last returns what is left when a program ends, with its end. What comes next is another's, and no part of its crash.
func (l *Leveler) Last() (text []byte) {
	if len(l.rest) > 0 {
		text = l.mark(append(l.rest, '\n'))
	}
	*l = Leveler{}
	return text
}

func (l *Leveler) mark(lines []byte) []byte {
	var out []byte
	for line := range bytes.Lines(lines) {
		if !hasPriority(line) {
			out = append(out, '<', byte(l.of(string(line))), '>')
		}
		out = append(out, line...)
	}
	return out
}

// hasPriority: the program speaks to the journal as sd-daemon(3) has it.
func hasPriority(line []byte) bool {
	return len(line) > 3 && line[0] == '<' && line[1] >= '0' && line[1] <= '7' && line[2] == '>'
}

// of is a line's own priority. One that says nothing is information, or a part of a crash.
func (l *Leveler) of(line string) priority {
	if BeginsCrash(strings.TrimSpace(line)) {
		l.crashed = true
		return critical
	}
	if p, ok := saidPriority(line); ok {
		l.crashed = false
		return p
	}
	if l.crashed {
		return critical
	}
	return info
}

// Level reads a line's level: whether it has one, as klog, zap and slog write it, and whether that is an error or
// worse.
func Level(line string) (isError, said bool) {
	p, said := saidPriority(line)
	return said && p <= failure, said
}

// saidPriority reads what klog, zap and slog write in front of their messages.
func saidPriority(line string) (priority, bool) {
	if p, ok := klogPriority(line); ok {
		return p, true
	}
	word := ""
	if strings.HasPrefix(line, "{") {
		var m struct{ Level string }
		_ = json.Unmarshal([]byte(line), &m) // what is no such line leaves it empty
		word = m.Level
	} else if strings.HasPrefix(line, "time=") {
		if _, after, ok := strings.Cut(line, " level="); ok {
			word, _, _ = strings.Cut(after, " ")
		}
	}
	p, ok := levels[strings.ToLower(strings.TrimSpace(word))]
	return p, ok
}

var levels = map[string]priority{
	"debug": verbose, "info": info, "warn": warning, "warning": warning, "error": failure,
	"dpanic": critical, "panic": critical, "fatal": critical,
}

// klogPriority reads the begin of klog's text: a letter, month and day, a space and the time.
func klogPriority(line string) (priority, bool) {
	const shape = "Lmmdd hh:"
	if len(line) < len(shape) || line[5] != ' ' || line[8] != ':' ||
		slices.ContainsFunc([]byte(line[1:5]+line[6:8]), func(b byte) bool { return b < '0' || b > '9' }) {
		return 0, false
	}
	p, ok := map[byte]priority{'I': info, 'W': warning, 'E': failure, 'F': critical}[line[0]]
	return p, ok
}

// BeginsCrash: a Go program writes such a line first when it crashes. "fatal error: fault" follows one that says more.
func BeginsCrash(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "unexpected fault address ") ||
		strings.HasPrefix(line, "fatal error: ") && line != "fatal error: fault"
}

// Prioritized is a stream to the journal on which each line gets its priority.
func Prioritized(to io.Writer) io.Writer { return &prioritized{to: to} }

type prioritized struct {
	to     io.Writer
	levels Leveler
}

// Write implements io.Writer. It is called with whole lines.
func (p *prioritized) Write(lines []byte) (int, error) {
	if _, err := p.to.Write(p.levels.Add(lines)); err != nil {
		return 0, err
	}
	return len(lines), nil
}
