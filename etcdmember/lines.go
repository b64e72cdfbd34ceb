package etcdmember

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/record"
)

// line is a connection to a member.
type line struct {
	to     lineTo
	client *clientv3.Client
	conn   net.Conn
	opened time.Time
	// unused closes it.
	unused *time.Timer
}

// lineTo is what a line is for. Whoever answers at it was a member of that name to the authorities of tls.
type lineTo struct {
	address netip.Addr
	dnsName string
	tls     *tls.Config
}

// openLine makes a line of a plain connection, which is closed with it.
func openLine(conn net.Conn, to lineTo) (*line, error) {
	c, err := member.DialOver(conn, to.dnsName, to.address, to.tls)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &line{to: to, client: c, conn: conn, opened: time.Now()}, nil
}

func (l *line) close() {
	l.client.Close()
	l.conn.Close()
}

// lines keeps the connections by which members answered through quorum, for the next question: agreeing on TLS costs a
// member twice as much as the question does. One that is not used for lineIdle is closed, and none is used for longer
// than lineLife, after which the member shows its certificate again. All methods are safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	free map[lineTo]*line
}

// take is a line that is free, and the caller's now; nil: there is none.
func (k *lines) take(to lineTo) *line {
	k.mu.Lock()
	l := k.free[to]
	delete(k.free, to)
	k.mu.Unlock()
	if l == nil {
		return nil
	}
	l.unused.Stop()
	if time.Since(l.opened) > lineLife {
		l.close()
		return nil
	}
	return l
}

// keep makes a line free. Of two to the same member one is closed.
func (k *lines) keep(l *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.free[l.to] != nil {
		l.close()
		return
	}
	if k.free == nil {
		k.free = map[lineTo]*line{}
	}
	k.free[l.to] = l
	l.unused = time.AfterFunc(lineIdle, func() { k.drop(l) })
}

// drop closes a line unless somebody has taken it.
func (k *lines) drop(l *line) {
	k.mu.Lock()
	free := k.free[l.to] == l
	if free {
		delete(k.free, l.to)
	}
	k.mu.Unlock()
	if free {
		l.close()
	}
}

// askAgain asks by a line that is kept. What is not a whole answer, and soon, is none: the line is closed, and the
// caller asks anew, and finds out by that how far the member can be reached.
func (k *asker) askAgain(ctx context.Context, to lineTo, a table.Answer) (table.Answer, bool) {
	l := k.lines.take(to)
	if l == nil {
		return a, false
	}
	ctx, cancel := context.WithTimeout(ctx, lineTimeout)
	defer cancel()
	l.ask(ctx, &a)
	return a, k.lines.keepOrClose(l, a)
}

// ask fills in what the member says.
func (l *line) ask(ctx context.Context, a *table.Answer) {
	if id, list, err := member.List(ctx, l.client); err == nil {
		a.Reach, a.ClusterID, a.Members = table.ReachLinearizable, id, list
	}
	if st, err := l.client.Status(ctx, member.ClientURL(l.to.dnsName)); err == nil {
		a.Reach = max(a.Reach, table.ReachAnswers)
		a.ClusterID, a.Version = record.MemberID(st.Header.GetClusterId()), st.Version
		a.Database, a.Leads = st.DbSize, st.Leader != 0 && st.Leader == st.Header.GetMemberId()
	}
}

// keepOrClose keeps a line by which everything was answered.
func (k *lines) keepOrClose(l *line, a table.Answer) (kept bool) {
	if a.Reach != table.ReachLinearizable || a.Version == "" {
		l.close()
		return false
	}
	k.keep(l)
	return true
}
