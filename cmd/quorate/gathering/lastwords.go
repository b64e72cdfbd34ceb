package gathering

import (
	"bytes"
	"errors"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/master"
	"github.com/quorate/quorate/internal/lastwords"
)

// errNoWords: nothing of an earlier boot is there.
var errNoWords = errors.New("no earlier boot has left logs on the data disk: if this master had one, its disk is new, " +
	"and the logs of before went with the former one")

// addLastWords adds what earlier boots have left of their logs on the data disk.
func (g *Gathering) addLastWords() {
	dir, boot := master.DiskMount, ""
	if g.cluster != nil {
		dir = g.cluster.Etcd.DataDir
	}
	if g.self != nil {
		boot = g.self.BootID
	}
	dir = agent.LastWordsDir(dir)
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
