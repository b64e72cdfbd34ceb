package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"

	"github.com/quorate/quorate/agent/status"
	"github.com/quorate/quorate/internal/asynclog"
	"github.com/quorate/quorate/internal/lastwords"
	"github.com/quorate/quorate/systemd"
)

// openAgentLog begins the agent's log on stderr, and in the last words. From then on nothing in this process waits for
// stderr or dies with it, whether a journal stands still, a disk is full, or the reader is gone.
func openAgentLog(words *lastwords.Keeper) *asynclog.Log {
	// Go ends a process that writes to a broken stdout or stderr, unless SIGPIPE is heard somewhere. Ignoring it would
	// do as well, but the children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	to := io.Writer(os.Stderr)
	if systemd.StderrIsJournal() {
		to = asynclog.Prioritized(to)
	}
	l := asynclog.New(to, words.Of(lastwords.Agent))
	// Each of these writes to stderr by itself otherwise: net/http by way of log, client-go by klog, gRPC by grpclog.
	slog.SetDefault(l.Logger)
	klog.SetSlogLogger(l.Logger)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, l))
	return l
}

// logLoss is what the agent shows of the log's losses.
func logLoss(l *asynclog.Log) func() status.LogLoss {
	return func() status.LogLoss {
		lost := l.Lost()
		loss := status.LogLoss{Lines: lost.Lines}
		if lost.Err != nil {
			loss.Error = lost.Err.Error()
		}
		return loss
	}
}

// endLog writes why the agent ended to the log, and gives the log and the last words a moment to come out.
func endLog(l *asynclog.Log, words *lastwords.Keeper, err error) error {
	if err != nil {
		complain(l, err)
		err = logged(err)
	} else {
		words.Add(lastwords.Agent, []byte(lastwords.Ended))
	}
	var closing sync.WaitGroup
	closing.Go(words.Close)
	l.Close()
	closing.Wait()
	return err
}
