package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// messages has one value of every message type; TestEveryMessageIsListed holds
// it complete.
func messages() []host.Message {
	return []host.Message{
		&NotifyLeaderAndIsr{}, &NotifyLeaderAndIsrReply{}, &UpdateMetadata{}, &StopReplica{}, &CodeReply{},
		&AdjustIsr{}, &AdjustIsrReply{}, &ControlledShutdown{}, &ControlledShutdownReply{}, &MoveLeader{},
		&GetMetadata{}, &GetMetadataReply{}, &CreateTable{}, &DropTable{}, &CreatePartition{}, &DropPartition{},
		&InitWriter{}, &InitWriterReply{}, &PutKv{}, &WriteReply{}, &Lookup{}, &LookupReply{}, &ProduceLog{},
		&FetchLog{}, &FetchLogReply{}, &ListOffsets{}, &ListOffsetsReply{}, &Probe{}, &ProbeReply{},
	}
}

func TestEveryMessageIsListed(t *testing.T) {
	fset := token.NewFileSet()
	var withAPI []string
	for _, name := range []string{"clone.go", "clone_data.go"} {
		f, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "API" {
				withAPI = append(withAPI, fn.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	var listed []string
	for _, m := range messages() {
		listed = append(listed, reflect.TypeOf(m).Elem().Name())
	}
	assert.ElementsMatch(t, withAPI, listed)
}

func TestAPINamesAreUnique(t *testing.T) {
	var names []string
	for _, m := range messages() {
		names = append(names, m.API())
		assert.NotContains(t, m.API(), " ")
	}
	slices.Sort(names)
	assert.Len(t, slices.Compact(names), len(messages()))
}

// TestCloneSharesNothing fills every message with distinct values in every
// field, clones it, and walks both side by side: equal everywhere, and no
// slice, map or pointer in common. Comparing
// addresses finds the shared array that an equality test would pass.
func TestCloneSharesNothing(t *testing.T) {
	for _, m := range messages() {
		t.Run(strings.TrimPrefix(reflect.TypeOf(m).String(), "*protocol."), func(t *testing.T) {
			next := 1
			fill(reflect.ValueOf(m).Elem(), &next)
			c := m.Clone()
			require.Equal(t, m, c)
			addresses := map[uintptr]string{}
			collect(reflect.ValueOf(m), "original", addresses)
			shared(t, reflect.ValueOf(c), "clone", addresses)
		})
	}
}

// TestCloneKeepsNil guards the difference between an absent and an empty value.
func TestCloneKeepsNil(t *testing.T) {
	for _, m := range messages() {
		assert.Equal(t, m, m.Clone())
	}
	l := (&LookupReply{Values: [][]byte{nil, {}, {1}}}).Clone().(*LookupReply)
	assert.Nil(t, l.Values[0])
	assert.NotNil(t, l.Values[1])
	f := (&FetchLogReply{Buckets: []FetchedBucket{{Records: []LogRecord{{}, {Value: []byte{}}}}}}).Clone().(*FetchLogReply)
	assert.Nil(t, f.Buckets[0].Records[0].Value)
	assert.NotNil(t, f.Buckets[0].Records[1].Value)
}

// TestClonedValuesDoNotGrowIntoEachOther guards the shared arena of values.
func TestClonedValuesDoNotGrowIntoEachOther(t *testing.T) {
	c := CloneRecords([]LogRecord{{Value: []byte("ab")}, {Value: []byte("cd")}})
	_ = append(c[0].Value, 'x')
	assert.Equal(t, "cd", string(c[1].Value))
}

func fill(v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, next)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), next)
		}
	case reflect.String:
		v.SetString(strings.Repeat("s", *next%17+1))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*next % 100))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*next % 100))
	default:
		panic("message field of a kind that the test cannot fill: " + v.Kind().String())
	}
}

func collect(v reflect.Value, path string, into map[uintptr]string) {
	walk(v, path, func(at uintptr, path string) { into[at] = path })
}

func shared(t *testing.T, v reflect.Value, path string, in map[uintptr]string) {
	t.Helper()
	walk(v, path, func(at uintptr, path string) {
		if other, ok := in[at]; ok {
			assert.Fail(t, "shared memory", "%s and %s", path, other)
		}
	})
}

func walk(v reflect.Value, path string, f func(uintptr, string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem().Size() > 0 { // all empty values live at one address
			f(v.Pointer(), path)
		}
		walk(v.Elem(), path, f)
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			f(v.Pointer(), path)
		}
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", f)
		}
	default: // no memory behind it that could be shared; fill refuses other kinds
	}
}
