package balancer

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// pool is what is known of a service's endpoints. Pure: it is told times and outcomes.
type pool struct {
	endpoints map[uint64]*endpoint // by the instance's id
	// coming are the choices that are not in force yet, each with the time when it was made; now is the one that is.
	coming []dated
	now    choice
}

// endpoint is an endpoint, or one that drains.
type endpoint struct {
	Backend
	ready        bool
	hits, misses int // in a row
	asked        time.Time
	asking       bool
	left         time.Time // zero: it is an endpoint
}

// choice is who gets a service's connections: new ones go to in, and old ones stay on kept, of which in is a part.
type choice struct {
	in, kept []netip.Addr
	names    []string // of in
	open     bool     // in are those that run, because none is ready
}

type dated struct {
	choice
	made time.Time
}

func newPool() *pool { return &pool{endpoints: map[uint64]*endpoint{}} }

// update takes over who is an endpoint, and returns those that are to be asked now.
func (p *pool) update(now time.Time, s Service) (due []Backend) {
	there := map[uint64]bool{}
	for _, b := range s.Backends {
		there[b.ID] = true
		e := p.endpoints[b.ID]
		if e == nil {
			e = &endpoint{}
			p.endpoints[b.ID] = e
		}
		e.Backend, e.left = b, time.Time{}
		if !e.asking && now.Sub(e.asked) >= s.Check.Interval {
			e.asked, e.asking = now, true
			due = append(due, b)
		}
	}
	for id, e := range p.endpoints {
		switch {
		case there[id]:
		case e.left.IsZero():
			e.left, e.ready, e.hits = now, false, 0
		case now.Sub(e.left) >= s.Drain:
			delete(p.endpoints, id)
		}
	}
	p.choose(now, s)
	return due
}

// observe takes over how a probe went.
func (p *pool) observe(id uint64, ok bool) {
	e := p.endpoints[id]
	if e == nil {
		return
	}
	e.asking = false
	if ok {
		e.hits, e.misses = e.hits+1, 0
	} else {
		e.hits, e.misses = 0, e.misses+1
	}
}

// choose notes a choice that differs from the last one.
func (p *pool) choose(now time.Time, s Service) {
	var all, ready, running []*endpoint
	for _, id := range slices.Sorted(maps.Keys(p.endpoints)) {
		e := p.endpoints[id]
		all = append(all, e)
		if !e.left.IsZero() {
			continue
		}
		e.ready = e.hits >= s.Check.Healthy || e.ready && e.misses < s.Check.Unhealthy
		if e.ready {
			ready = append(ready, e)
		}
		if e.Running {
			running = append(running, e)
		}
	}
	c := choice{}
	c.kept, _ = addresses(all)
	if len(ready) > 0 {
		c.in, c.names = addresses(ready)
	} else {
		c.in, c.names = addresses(running)
		c.open = len(running) > 0
	}
	last := p.now
	if n := len(p.coming); n > 0 {
		last = p.coming[n-1].choice
	}
	if !c.equal(last) {
		p.coming = append(p.coming, dated{c, now})
	}
}

// addresses are those of endpoints, each once, and their names, in the order of the addresses.
func addresses(list []*endpoint) (out []netip.Addr, names []string) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *endpoint) int { return a.Address.Compare(b.Address) })
	for _, e := range list {
		if !slices.Contains(out, e.Address) { // a VM that was made anew may have its predecessor's
			out, names = append(out, e.Address), append(names, e.Name)
		}
	}
	return out, names
}

// inForce is the choice that counts now.
func (p *pool) inForce(now time.Time, s Service) choice {
	for len(p.coming) > 0 && now.Sub(p.coming[0].made) >= s.Settle {
		p.now, p.coming = p.coming[0].choice, p.coming[1:]
	}
	return p.now
}

func (c choice) equal(o choice) bool {
	return slices.Equal(c.in, o.in) && slices.Equal(c.kept, o.kept) && slices.Equal(c.names, o.names) &&
		c.open == o.open
}
