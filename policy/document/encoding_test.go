// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

func encoded(t *testing.T, enc encoding.Encoding, text string) []byte {
	t.Helper()
	b, err := enc.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestToUTF8(t *testing.T) {
	const bom = "\ufeff"
	be, le := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	declared := func(name string) string { return `<?xml version="1.0" encoding='` + name + `' standalone="yes" ?>` }
	tests := []struct {
		name        string
		body        []byte
		contentType string
		want        string
	}{
		{"utf-8", []byte(declared("UTF-8") + "<a>é</a>"), "", "<a>é</a>"},
		{"two marks", []byte(bom + bom + declared("utf-8") + "<a>é</a>"), "", "<a>é</a>"},
		{"utf-16 with a mark", encoded(t, le, bom+declared("utf-16")+"<a>é</a>"), "", "<a>é</a>"},
		{"utf-16 big-endian with a mark", encoded(t, be, bom+"<a>é</a>"), "text/xml; charset=utf-8", "<a>é</a>"},
		{"utf-16 without mark", encoded(t, be, declared("utf-16")+"<a>é</a>"), "", "<a>é</a>"},
		{"utf-16 little-endian without mark", encoded(t, le, "<a>é</a>"), "", "<a>é</a>"},
		{"utf-32", encoded(t, utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "<a>é</a>"), "", "<a>é</a>"},
		{"utf-32 little-endian without mark", encoded(t, utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "<a>é</a>"), "", "<a>é</a>"},
		{"latin-1", encoded(t, charmap.ISO8859_1, declared("iso-8859-1")+"<a>é</a>"), "", "<a>é</a>"},
		{"cyrillic by the header alone", encoded(t, charmap.Windows1251, "<a>дом</a>"), `text/xml; charset="windows-1251"`, "<a>дом</a>"},
		{"cyrillic with an underscore", encoded(t, charmap.Windows1251, declared("windows_1251")+"<a>дом</a>"), "", "<a>дом</a>"},
		{"a DOS code page", encoded(t, charmap.CodePage850, declared("IBM850")+"<a>é</a>"), "", "<a>é</a>"},
		{"gb18030", encoded(t, simplifiedchinese.GB18030, declared("gb18030")+"<a>中文</a>"), "", "<a>中文</a>"},
		{"a wrong header, a right declaration", encoded(t, simplifiedchinese.GB18030, declared("gb18030")+"<a>中文</a>"), "text/xml; charset=utf-8", "<a>中文</a>"},
		{"escapes in ASCII", encoded(t, japanese.ISO2022JP, declared("ISO-2022-JP")+"<a>日本</a>"), "text/xml; charset=utf-8", "<a>日本</a>"},
		{"utf-8 under another name", []byte(declared("iso-8859-1") + "<a>é</a>"), "text/xml; charset=iso-8859-1", "<a>é</a>"},
		{"utf-16 declared, utf-8 sent", []byte(declared("utf-16") + "<a>é</a>"), "", "<a>é</a>"},
		{"an unknown name over ASCII", []byte(declared("x-none") + "<a>e</a>"), "", "<a>e</a>"},
		{"an unknown name over something", append([]byte(declared("x-none")), "<a>\xe9</a>"...), "", "<a>é</a>"},
		{"not utf-8 though declared", append([]byte(declared("utf-8")), "<a>\xe9</a>"...), "", "<a>é</a>"},
		{"utf-7 is never decoded", []byte(declared("utf-7") + "+ADw-a+AD4-"), "text/xml; charset=utf-7", "+ADw-a+AD4-"},
		{"a broken header", []byte("<a>é</a>"), "text/xml; charset", "<a>é</a>"},
		{"nothing", nil, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(toUTF8(test.body, test.contentType)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzTranscoded reads a document in UTF-8 and in UTF-16 and UTF-32 with a mark. Its
// encoding does not change its meaning.
func FuzzTranscoded(f *testing.F) {
	for _, sample := range []string{rssSample, rdfSample, atomSample, jsonSample, rssOpen + "<ttl>60</ttl><item><title>\u00e9\U0001f600</title></item>" + rssClose} {
		f.Add(sample)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 || !utf8.ValidString(text) || len(text) < 4 || wideEncoding([]byte(text)) != nil || declared([]byte(text)) != "utf-8" {
			return
		}
		want, errWant := Read([]byte(text), "", now)
		for name, enc := range map[string]encoding.Encoding{
			"UTF-8":    unicode.UTF8BOM,
			"UTF-16BE": unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "UTF-16LE": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
			"UTF-32BE": utf32.UTF32(utf32.BigEndian, utf32.UseBOM), "UTF-32LE": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM),
		} {
			got, err := Read(encoded(t, enc, text), "", now)
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
