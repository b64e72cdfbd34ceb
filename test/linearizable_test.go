package test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the search for an order. A history of a few thousand operations takes well under a second.
const checkTime = time.Minute

// register is the model of one key, "" where there is no such key. Input and output are both the operation.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		now, o := state.(string), input.(operation)
		switch {
		case o.kind == opRead:
			return o.found == now, now
		case o.kind == opPut:
			return true, o.value
		case o.outcome == refused:
			return o.found == now && now != o.old, now
		case now == o.old:
			return true, o.value
		}
		return o.outcome == unknown, now // a swap without an answer may have been refused
	},
	DescribeOperation: func(input, _ any) string { return input.(operation).String() },
}

// linearizable says why a history is none of one register a key: not even one order of its operations explains what the
// clients saw, or no verdict was found in time, which is as bad.
func linearizable(history []operation) error {
	parts := map[string][]porcupine.Operation{}
	for _, o := range resolve(history) {
		end := o.end.Nanoseconds()
		if o.outcome == unknown {
			end = math.MaxInt64
		}
		parts[o.key] = append(parts[o.key], porcupine.Operation{ClientId: o.client, Input: o, Output: o,
			Call: o.call.Nanoseconds(), Return: end})
	}
	for key, part := range parts {
		switch porcupine.CheckOperationsTimeout(register, part, checkTime) {
		case porcupine.Illegal:
			return fmt.Errorf("key %s: no order of these operations explains what was seen:\n%s", key, show(part))
		case porcupine.Unknown:
			return fmt.Errorf("key %s: no verdict on %d operations within %s", key, len(part), checkTime)
		}
	}
	return nil
}

// show prints a key's history for a person.
func show(part []porcupine.Operation) string {
	var lines []string
	for _, o := range part {
		lines = append(lines, o.Input.(operation).String())
	}
	return strings.Join(lines, "\n")
}

// at makes an operation of a short history by hand; times are in seconds.
func at(o operation, call, end int) operation {
	o.call, o.end = time.Duration(call)*time.Second, time.Duration(end)*time.Second
	if o.outcome == "" {
		o.outcome = done
	}
	if o.key == "" {
		o.key = "k"
	}
	return o
}

func TestTheCheckTellsALinearizableHistory(t *testing.T) {
	lost := operation{kind: opPut, value: "b", outcome: unknown}
	for _, c := range []struct {
		name    string
		legal   bool
		history []operation
	}{
		{"a read of what was written", true, []operation{at(operation{kind: opPut, value: "a"}, 0, 1),
			at(operation{kind: opRead, found: "a"}, 2, 3)}},
		{"a read during a write sees it or not", true, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 5), at(operation{kind: opRead, found: "a"}, 1, 2),
			at(operation{kind: opRead, found: "a"}, 3, 4)}},
		{"a stale read", false, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 1), at(operation{kind: opPut, value: "b"}, 2, 3),
			at(operation{kind: opRead, found: "a"}, 4, 5)}},
		{"a write that was acknowledged and is lost", false, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 1), at(operation{kind: opRead, found: ""}, 2, 3)}},
		{"two reads during a write that go back in time", false, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 9), at(operation{kind: opRead, found: "a"}, 1, 2),
			at(operation{kind: opRead, found: ""}, 3, 4)}},
		{"a write without an answer that happens much later", true, []operation{
			at(lost, 0, 1), at(operation{kind: opRead, found: ""}, 2, 3), at(operation{kind: opRead, found: "b"}, 8,
				9)}},
		{"a write without an answer that never happens", true,
			[]operation{at(lost, 0, 1), at(operation{kind: opRead, found: ""}, 8, 9)}},
		{"a write without an answer that happens and goes again", false, []operation{
			at(lost, 0, 1), at(operation{kind: opRead, found: "b"}, 2, 3), at(operation{kind: opRead, found: ""}, 4,
				5)}},
		{"a write without an answer that happens twice", false, []operation{
			at(lost, 0, 1), at(operation{kind: opRead, found: "b"}, 2, 3), at(operation{kind: opPut, value: "c"}, 4, 5),
			at(operation{kind: opRead, found: "c"}, 6, 7),
			at(operation{kind: opRead, found: "b"}, 8, 9)}},
		{"two swaps from one value are both acknowledged", false, []operation{
			at(operation{kind: opSwap, value: "a"}, 0, 5), at(operation{kind: opSwap, value: "b"}, 0, 5)}},
		{"a swap is refused for what is there", true, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 1),
			at(operation{kind: opSwap, old: "", value: "b", found: "a", outcome: refused}, 2, 3)}},
		{"a swap is refused although it fits", false, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 1), at(operation{kind: opSwap, old: "a", value: "b", found: "a",
				outcome: refused}, 2, 3)}},
		{"a chain of swaps without an answer, seen at its end", true, []operation{
			at(operation{kind: opSwap, value: "a", outcome: unknown}, 0, 1),
			at(operation{kind: opSwap, old: "a", value: "b", outcome: unknown}, 2, 3),
			at(operation{kind: opRead, found: "b"}, 8, 9)}},
		{"a swap without an answer whose first value is gone", false, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 1), at(operation{kind: opPut, value: "c"}, 2, 3),
			at(operation{kind: opSwap, old: "a", value: "b", outcome: unknown}, 4, 5),
			at(operation{kind: opRead, found: "b"}, 8, 9)}},
		{"each key is a register of its own", true, []operation{
			at(operation{kind: opPut, value: "a"}, 0, 1), at(operation{kind: opRead, key: "other", found: ""}, 2, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := linearizable(c.history); (err == nil) != c.legal {
				t.Errorf("legal: %t, want %t: %v", err == nil, c.legal, err)
			}
		})
	}
}
