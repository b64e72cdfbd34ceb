package rivals

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// linesOfJournal are the times of a journal's lines after since; with texts, of those that have one of them.
func linesOfJournal(journal string, since time.Time, texts []string) (at []time.Time, err error) {
	for line := range strings.Lines(journal) {
		var entry struct {
			Micros  string `json:"__REALTIME_TIMESTAMP"`
			Message any    `json:"MESSAGE"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return nil, err
		}
		micros, err := strconv.ParseInt(entry.Micros, 10, 64)
		if err != nil {
			return nil, err
		}
		message, _ := entry.Message.(string) // what is no text is bytes of somebody else's
		has := func(text string) bool { return strings.Contains(message, text) }
		if t := time.UnixMicro(micros); t.After(since) && (len(texts) == 0 || slices.ContainsFunc(texts, has)) {
			at = append(at, t)
		}
	}
	return at, nil
}

// ofTheWatch is a line of the agent's log: its time, and the state or the act that it tells of. On a serial console
// something stands before it.
var ofTheWatch = regexp.MustCompile(`\btime=(\S+) .*msg="watched unit" .*?\b(state|what)=(\S+)`)

// linesOfAgent are the times of the lines in an agent's log that say that something is wrong with a unit.
func linesOfAgent(path string, since time.Time) (at []time.Time, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was rotated meanwhile
	}
	for line := range strings.Lines(string(text)) {
		found := ofTheWatch.FindStringSubmatch(line)
		if found == nil || found[2] == "state" && slices.Contains(wellStates, found[3]) {
			continue
		}
		if t, err := time.Parse(time.RFC3339Nano, found[1]); err == nil && t.After(since) {
			at = append(at, t)
		}
	}
	return at, err
}
