package agent

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/quorate/quorate/etcdmember/restoredir"
)

// makingOOMScore and makingNice put the process that makes a directory behind the agent: where the memory is too small
// for both, the agent stays.
const makingOOMScore, makingNice = 500, 5

// makeDirectory has a directory made for a restore, by this program as `quorate make-directory`: etcd's code may end
// its process at any time.
func (a *Agent) makeDirectory(ctx context.Context, work restoredir.Job) error {
	path := filepath.Join(work.Scratch, "making.json")
	if err := work.Save(path); err != nil {
		return err
	}
	_, err := SelfRun{Self: a.cfg.Self, Args: []string{"make-directory", "--config", path}, Env: a.cfg.Env,
		OOMScore: makingOOMScore, Nice: makingNice, Log: a.cfg.Log}.Run(ctx)
	if err != nil {
		return fmt.Errorf("make the directory of a restore: %w", err)
	}
	return nil
}
