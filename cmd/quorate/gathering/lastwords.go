package gathering

import (
	"bytes"
	"errors"
	"slices"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/internal/lastwords"
)

// errNoWords: nothing of an earlier boot is there.
var errNoWords = errors.New("no earlier boot has left logs on the data disk: if this master had one, its disk is new, " +
	"and the logs of before went with the former one")

// agentLog is the part that has what the running boot's agent says.
const agentLog = "logs/agent.log"

// errSilentAgent: nothing of this boot is there.
var errSilentAgent = errors.New("there is no journal here, and the agent of this boot has not written its log to the " +
	"data disk")

// errNoBoot: it cannot be told what of the words is of this boot.
var errNoBoot = errors.New("there is no journal here, and it is not known which boot this is: all that the data disk " +
	"has is in lastwords/agent.log")

// lastWords is where the data disk has the ends of the logs, and which boot runs; empty: that is not known.
func (g *Gathering) lastWords() (dir, boot string) {
	dir = master.DiskMount
	if g.cluster != nil {
		dir = g.cluster.Etcd.DataDir
	}
	if g.self != nil {
		boot = g.self.BootID
	}
	return agent.LastWordsDir(dir), boot
}

// addAgentLog adds what the agent of this boot has said, where no journal has it: the data disk keeps that, too.
func (g *Gathering) addAgentLog() {
	if slices.Contains(g.file.Manifest().Parts, agentLog) {
		return // it is among the files
	}
	dir, boot := g.lastWords()
	text, err := lastwords.Since(dir, lastwords.Agent, boot)
	switch {
	case err != nil:
		g.file.Lacks(agentLog, err)
	case boot == "":
		g.file.Lacks(agentLog, errNoBoot)
	case len(text) == 0:
		g.file.Lacks(agentLog, errSilentAgent)
	default:
		g.file.Log(agentLog, bytes.NewReader(text))
	}
}

// addLastWords adds what earlier boots have left of their logs on the data disk.
func (g *Gathering) addLastWords() {
	dir, boot := g.lastWords()
	sources, err := lastwords.Sources(dir)
	if err != nil {
		g.file.Lacks("lastwords", err)
		return
	}
	found := false
	for _, source := range sources {
		part := "lastwords/" + source + ".log"
		text, err := lastwords.Before(dir, source, boot)
		if err != nil {
			g.file.Lacks(part, err)
		} else if len(text) > 0 {
			g.file.Log(part, bytes.NewReader(text))
			found = true
		}
	}
	if !found {
		g.file.Lacks("lastwords", errNoWords)
	}
}
