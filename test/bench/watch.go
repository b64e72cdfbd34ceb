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
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	c := rivals.Config{Dir: filepath.Join(b.dir, "watch"), Cache: filepath.Join(cache, "quorate", "trees"), Bin: b.bin,
		Budget: b.budget, Load: load, Say: b.say,
		Begin: func(ctx context.Context, conf *localgce.Config, more string) error {
			dir := conf.State + "-config"
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			return b.begin(ctx, dir, conf, more)
		}}
	for _, need := range []struct {
		path, by string
		into     *string
	}{
		{b.image, "make image", &c.Image},
		{b.monit, "test/bench/monit.sh", &c.Monit},
	} {
		if *need.into, err = filepath.Abs(need.path); err == nil {
			_, err = os.Stat(*need.into)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; %s makes it", err, need.by)
		}
	}
	return rivals.Measure(ctx, c)
}
