package main

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// probe reads, writes and lists as an operator, from now on.
func (l *loaded) probe(ctx context.Context) error {
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}
	if _, err := l.client.CoreV1().ConfigMaps("default").Create(ctx, own, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, p := range []struct {
		kind  string
		pause time.Duration
		ask   func(context.Context, kubernetes.Interface) error
	}{
		{"read", 100 * time.Millisecond, func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("default").Get(ctx, "probe", metav1.GetOptions{})
			return err
		}},
		{"write", 100 * time.Millisecond, func(ctx context.Context, c kubernetes.Interface) error {
			changed := own.DeepCopy()
			changed.Data = map[string]string{"at": time.Now().Format(time.RFC3339Nano)}
			_, err := c.CoreV1().ConfigMaps("default").Update(ctx, changed, metav1.UpdateOptions{})
			return err
		}},
		{"list", 2 * time.Second, func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			return err
		}},
	} {
		client, err := l.operator("probe/" + p.kind)
		if err != nil {
			return err
		}
		l.wait.Go(func() {
			for sleep(ctx, p.pause) == nil {
				call, cancel := context.WithTimeout(ctx, 10*time.Second)
				began := time.Now()
				err := p.ask(call, client)
				cancel()
				if err == nil {
					l.probes.note(p.kind, began)
				}
			}
		})
	}
	return nil
}

// probes are how long the operator's requests took that were answered.
type probes struct {
	mu  sync.Mutex
	all []answered
}

type answered struct {
	kind  string
	began time.Time
	took  time.Duration
}

func (p *probes) note(kind string, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, answered{kind, began, time.Since(began)})
}

// of is the latency of a kind of requests that began in a span of time.
func (p *probes) of(kind string, from, to time.Time) latency {
	p.mu.Lock()
	defer p.mu.Unlock()
	var took []time.Duration
	for _, a := range p.all {
		if a.kind == kind && !a.began.Before(from) && a.began.Before(to) {
			took = append(took, a.took)
		}
	}
	return latencyOf(took)
}

func latencyOf(took []time.Duration) latency {
	if len(took) == 0 {
		return latency{}
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	return latency{at(0.5), at(0.99)}
}
