package supervisor

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// voice logs for those who must not wait: a log that blocks, as a stderr whose reader has stopped does, loses lines.
type voice struct {
	log   *slog.Logger
	lines chan slog.Record
	lost  atomic.Int64
}

// voiceLines is how many lines may wait for a slow log. A transition of all processes at once is some ten.
const voiceLines = 256

func newVoice(log *slog.Logger) *voice {
	return &voice{log: log, lines: make(chan slog.Record, voiceLines)}
}

// say hands over one line with the time of now.
func (v *voice) say(level slog.Level, message string, args ...any) {
	if !v.log.Enabled(context.Background(), level) {
		return
	}
	r := slog.NewRecord(time.Now(), level, message, 0)
	r.Add(args...)
	select {
	case v.lines <- r:
	default:
		v.lost.Add(1)
	}
}

// speak writes lines until ended is closed, and then those that are still there.
func (v *voice) speak(ended <-chan struct{}) {
	for {
		select {
		case r := <-v.lines:
			v.write(r)
		case <-ended:
			for {
				select {
				case r := <-v.lines:
					v.write(r)
				default:
					return
				}
			}
		}
	}
}

// write has nobody to whom it could report that the log itself fails.
func (v *voice) write(r slog.Record) {
	_ = v.log.Handler().Handle(context.Background(), r)
	if n := v.lost.Swap(0); n > 0 {
		v.log.Warn("log lines were lost because the log did not take them in time", "lines", n)
	}
}
