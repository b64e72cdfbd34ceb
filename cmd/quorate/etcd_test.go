package main

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/terminal/terminaltest"
	"github.com/quorate/quorate/etcdmember/explain"
)

// TestExplanationText: a leader with an order to follow, and a replica that waits for a quorum.
func TestExplanationText(t *testing.T) {
	terminaltest.CompareTexts(t, "testdata/explain", func(w io.Writer, input []byte, now time.Time) error {
		var e explain.Explanation
		err := json.Unmarshal(input, &e)
		showExplanation(w, e, now)
		return err
	})
}
