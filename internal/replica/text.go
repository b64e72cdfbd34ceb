package replica

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/pattern"
)

// checkBytes finds what the yaml module names without a line, or takes for something else: text that is not UTF-8, and
// control characters.
func checkBytes(data []byte) *Fault {
	fault := func(at int, format string, args ...any) *Fault {
		return &Fault{Line: 1 + bytes.Count(data[:at], []byte("\n")), whole: fmt.Errorf(format, args...)}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return fault(0, "found text in UTF-16; allowed: UTF-8")
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return fault(at, "found the byte 0x%02x, which is not UTF-8; allowed: text in UTF-8", data[at])
		case isControl(r) && r != '\t' && r != '\n' && r != '\r':
			return fault(at, "found the control character 0x%02x; allowed: text", data[at])
		}
		at += size
	}
	return nil
}

// indentingTab is a tab before the first character of a line.
var indentingTab = pattern.Of(`(?m)^[ \t]*\t`)

// syntaxFault says in which line a document stops being YAML or JSON. The yaml module says of a tab that it cannot
// start a token, which helps nobody who does not see it.
func syntaxFault(source string, data []byte, err error) Fault {
	tabs := indentingTab().FindAllIndex(data, -1)
	if len(tabs) > 0 && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		text := "found a tab in the indentation"
		if more := len(tabs) - 1; more > 0 {
			text += fmt.Sprintf(", and in that of %s", others(more))
		}
		return Fault{Source: source, Line: 1 + bytes.Count(data[:tabs[0][0]], []byte("\n")),
			whole: fmt.Errorf("%s; allowed: spaces", text)}
	}
	line, why := yamlLine(data, err)
	return Fault{Source: source, Line: line, whole: fmt.Errorf("found text that is neither YAML nor JSON (%s); "+
		"allowed: a %s document of %s", why, Kind, APIVersion)}
}

func others(lines int) string {
	if lines == 1 {
		return "another line"
	}
	return fmt.Sprintf("%d other lines", lines)
}

var (
	yamlError = pattern.Of(`^yaml: (?:line ([0-9]+): )?(.*)$`)
	// fromZero are the errors of the yaml module's parser: it counts lines from 0, as its scanner does not.
	fromZero = pattern.Of(`^did not find expected (node content|key|'-' indicator|',' or |<)`)
)

// yamlLine takes the line out of the yaml module's error; 0: it names none.
func yamlLine(data []byte, err error) (line int, why string) {
	parts := yamlError().FindStringSubmatch(err.Error())
	if parts == nil {
		return 0, err.Error()
	}
	line, _ = strconv.Atoi(parts[1]) // of digits, or empty
	why = parts[2]
	if line > 0 && fromZero().MatchString(why) {
		line++
	}
	// What is missing at the end is missing in the last line.
	return min(line, 1+bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))), why
}
