package protocol

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSoundSetsEveryDecision guards against a field that was added to a policy
// and forgotten in its sound value, which would plant a bug for good.
func TestSoundSetsEveryDecision(t *testing.T) {
	sound := reflect.ValueOf(Sound().Tablet)
	for i := range sound.NumField() {
		assert.True(t, sound.Field(i).Bool(), sound.Type().Field(i).Name)
	}
}
