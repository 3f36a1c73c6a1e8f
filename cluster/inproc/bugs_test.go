package inproc

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
)

func TestEachBugReplacesOneFieldOfItsOwn(t *testing.T) {
	names, fields := map[string]bool{}, map[string]string{}
	for _, b := range Bugs() {
		assert.False(t, names[b.Name], "two bugs are named %s", b.Name)
		names[b.Name] = true
		changed := b.changes()
		require.Len(t, changed, 1, b.Name)
		assert.Empty(t, fields[changed[0]], "%s replaces the same field", b.Name)
		fields[changed[0]] = b.Name
		for _, text := range []string{b.Source, b.Breaks, b.Trigger, b.CaughtBy, b.Scenario} {
			assert.NotEmpty(t, text, b.Name)
		}
	}
}

// TestEachDecisionHasABug holds the other direction: a decision that no bug
// drops is a decision that no scenario is known to need.
func TestEachDecisionHasABug(t *testing.T) {
	dropped := map[string]bool{}
	for _, b := range Bugs() {
		for _, field := range b.changes() {
			dropped[field] = true
		}
	}
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for f := range typ.Fields() {
			name := strings.TrimPrefix(path+"."+f.Name, ".")
			if f.Type.Kind() == reflect.Struct {
				walk(name, f.Type)
				continue
			}
			assert.True(t, dropped[name], "no bug drops %s", name)
		}
	}
	walk("", reflect.TypeFor[protocol.Policy]())
}

func TestEachBugHasAFile(t *testing.T) {
	for _, b := range Bugs() {
		_, err := os.Stat("bug_" + strings.ReplaceAll(b.Name, "-", "_") + ".go")
		assert.NoError(t, err)
	}
}

func TestPlan(t *testing.T) {
	t.Run("none is sound", func(t *testing.T) {
		policy, err := Plan(nil)
		require.NoError(t, err)
		assert.Equal(t, protocol.Sound(), policy)
	})
	t.Run("several", func(t *testing.T) {
		policy, err := Plan([]string{"advertise-before-admit", "client-no-backoff"})
		require.NoError(t, err)
		assert.False(t, policy.Coordinator.WithholdPending)
		assert.False(t, policy.Client.BackOff)
		assert.Equal(t, protocol.Sound().Tablet, policy.Tablet)
	})
	t.Run("unknown name", func(t *testing.T) {
		_, err := Plan([]string{"client-no-backof"})
		require.ErrorContains(t, err, `unknown bug "client-no-backof"; near: client-no-backoff`)
		_, err = Plan([]string{"unguarded"})
		assert.ErrorContains(t, err, "unguarded-zk-writes")
	})
	t.Run("two in one field", func(t *testing.T) {
		twin := clientNoBackoff()
		twin.Name = "twin"
		_, err := plan(append(Bugs(), twin), []string{"client-no-backoff", "twin"})
		require.ErrorContains(t, err, "bugs client-no-backoff and twin: both replace Client.BackOff")
		_, err = Plan([]string{"client-no-backoff", "client-no-backoff"})
		assert.NoError(t, err, "the same bug twice is planted once")
	})
}

func TestPresetsNameBugsThatExist(t *testing.T) {
	for _, p := range Presets() {
		_, err := Plan(p.Bugs)
		require.NoError(t, err, p.Name)
		found, err := FindPreset(p.Name)
		require.NoError(t, err)
		assert.Equal(t, p, found)
	}
	_, err := FindPreset("fluss-0.9")
	assert.ErrorContains(t, err, "fluss-0.9.1")
}
