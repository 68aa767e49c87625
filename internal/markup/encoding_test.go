// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package markup

import (
	"testing"

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

func TestUTF8(t *testing.T) {
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
			text := UTF8(test.body, test.contentType)
			if got := string(text[Begin(text):]); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The field, the declaration and the bytes may each say something else. The text is the same in
// all combinations here.
func TestLabelsBesideBytes(t *testing.T) {
	const (
		broken = "text/xml; charset: utf-8"
		utf8   = "text/xml; charset=utf-8"
		latin  = "text/xml; charset=iso-8859-1"
		russia = "text/xml; charset=windows-1251"
	)
	wide := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	for name, test := range map[string]struct {
		bytes                encoding.Encoding
		text                 string
		fields, declarations []string
	}{
		"utf-8 is what it is":         {encoding.Nop, "<a>né дом</a>", []string{"", utf8, latin, russia, broken}, []string{"", "utf-8", "iso-8859-1", "windows-1251"}},
		"utf-16 has a mark":           {wide, "<a>né дом</a>", []string{"", utf8, latin, russia}, []string{"", "utf-8", "iso-8859-1", "utf-16"}},
		"latin-1 is what is left":     {charmap.ISO8859_1, "<a>né</a>", []string{"", utf8, latin, latin + "; charset=iso-8859-1", broken}, []string{"", "utf-8", "iso-8859-1"}},
		"cyrillic by the field":       {charmap.Windows1251, "<a>дом</a>", []string{russia, russia + "; charset=windows-1251"}, []string{"", "utf-8", "iso-8859-1", "windows-1251"}},
		"cyrillic by the declaration": {charmap.Windows1251, "<a>дом</a>", []string{"", "text/xml", utf8, broken}, []string{"windows-1251"}},
	} {
		for _, field := range test.fields {
			for _, declared := range test.declarations {
				document := test.text
				if declared != "" {
					document = `<?xml version="1.0" encoding="` + declared + `"?>` + test.text
				}
				text := UTF8(encoded(t, test.bytes, document), field)
				if got := string(text[Begin(text):]); got != test.text {
					t.Errorf("%s: with the field %q and %q declared it is %q, want %q", name, field, declared, got, test.text)
				}
			}
		}
	}
}
