package member

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
