// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/feedpollard/pollard/internal/markup"
)

// FuzzTranscoded reads a document in UTF-8 and in UTF-16 and UTF-32 with a mark. Its
// encoding does not change its meaning.
func FuzzTranscoded(f *testing.F) {
	for _, sample := range []string{rssSample, rdfSample, atomSample, jsonSample, rssOpen + "<ttl>60</ttl><item><title>\u00e9\U0001f600</title></item>" + rssClose} {
		f.Add(sample)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 || !utf8.ValidString(text) || len(text) < 4 || !markup.ASCIICompatible([]byte(text), "") || !strings.EqualFold(markup.Declared([]byte(text)), "utf-8") {
			return
		}
		want, errWant := Read([]byte(text), "", now)
		for name, enc := range map[string]encoding.Encoding{
			"UTF-8":    unicode.UTF8BOM,
			"UTF-16BE": unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "UTF-16LE": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
			"UTF-32BE": utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "UTF-32LE": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM),
		} {
			encoded, err := enc.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(encoded, "", now)
			if (err == nil) != (errWant == nil) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q is %+v, %v, and in UTF-8 %+v, %v", name, text, got, err, want, errWant)
			}
		}
	})
}

// A repaired declaration is a change: to a reader's parser all letters beyond ASCII are
// others than before.
func TestEncodingDeclarationRepaired(t *testing.T) {
	const wrong, right, none = `<?xml version="1.0" encoding="ISO-8859-1"?>`, `<?xml version="1.0" encoding="utf-8"?>`, "<?xml version='1.0'?>"
	const feed = `<rss version="2.0"><channel><title>Süß</title><item><guid>1</guid></item></channel></rss>`
	want := read(t, right+feed).Fingerprint
	if read(t, wrong+feed).Fingerprint == want {
		t.Error("a repaired declaration leaves the fingerprint as it was")
	}
	for _, same := range []string{none, "", "\ufeff" + wrong, strings.Replace(right, "utf-8", "UTF-8", 1)} {
		if read(t, same+feed).Fingerprint != want {
			t.Errorf("%q: another fingerprint than with UTF-8 declared", same)
		}
	}
}
