package etcdmember

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.AtOnce(4)
	etcdtest.Main(m)
}
