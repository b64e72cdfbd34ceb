package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/internal/localgce"
	"github.com/quorate/quorate/test/bench/rivals"
)

// watches holds quorate's watch of the kubelet against others.
func (b *bench) watches(ctx context.Context) (*rivals.Result, error) {
	boots, err := b.bootImage()
	if err != nil {
		return nil, err
	}
	c := rivals.Config{Dir: filepath.Join(b.dir, "watch"), Image: boots.Image, Cache: boots.Cache, Bin: b.bin,
		Budget: b.budget, Load: load, Say: b.say,
		Begin: func(ctx context.Context, conf *localgce.Config, more string) error {
			dir := conf.State + "-config"
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			return b.begin(ctx, dir, conf, more)
		}}
	if c.Monit, err = filepath.Abs(b.monit); err == nil {
		_, err = os.Stat(c.Monit)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; test/bench/monit.sh makes it", err)
	}
	return rivals.Measure(ctx, c)
}
