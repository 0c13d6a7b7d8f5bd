package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const module = "github.com/agentd/agentd/"

// types turns the Go types of messages into JSON Schemas, from their source: members, types and
// comments.
type types struct {
	root     string
	packages map[string]*sources // by folder
	// components are the schemas of structs, by name, in the order in which they are met.
	components ordered
	met        map[string]string // names of components, by folder and type
}

// sources are the declarations of a package.
type sources struct {
	specs   map[string]*ast.TypeSpec
	imports map[*ast.TypeSpec]map[string]string // by name
	texts   map[string]bool                     // types that marshal to text
}

// marshaled are the types that are written by way of others.
func marshaled(folder, name string) string {
	return map[string]string{"rpc.Result": "resultJSON", "rpc.Error": "errorJSON", "rpc.Request": "requestJSON"}[folder+"."+name]
}

func (t *types) load(folder string) (*sources, error) {
	if s, ok := t.packages[folder]; ok {
		return s, nil
	}
	s := &sources{specs: map[string]*ast.TypeSpec{}, imports: map[*ast.TypeSpec]map[string]string{}, texts: map[string]bool{}}
	entries, err := os.ReadDir(filepath.Join(t.root, folder))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(t.root, folder, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.add(file)
	}
	t.packages[folder] = s
	return s, nil
}

func (s *sources) add(file *ast.File) {
	imports := map[string]string{}
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue // which does not parse
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					if ts.Doc == nil {
						ts.Doc = d.Doc
					}
					s.specs[ts.Name.Name], s.imports[ts] = ts, imports
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil && d.Name.Name == "MarshalText" {
				typ := d.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				if name, ok := typ.(*ast.Ident); ok {
					s.texts[name.Name] = true
				}
			}
		}
	}
}

// named is the schema of a type of a package, a reference for a struct.
func (t *types) named(folder, name string) (ordered, error) {
	if by := marshaled(folder, name); by != "" {
		return t.component(folder, by, name)
	}
	s, err := t.load(folder)
	if err != nil {
		return nil, err
	}
	spec := s.specs[name]
	switch {
	case spec == nil:
		return nil, fmt.Errorf("%s has no type %s", folder, name)
	case s.texts[name]:
		return ordered{{"type", "string"}}, nil
	}
	if _, ok := spec.Type.(*ast.StructType); ok {
		return t.component(folder, name, name)
	}
	return t.expression(folder, spec, spec.Type)
}

// component is a reference to the schema of a struct, which is made if it is new.
func (t *types) component(folder, source, name string) (ordered, error) {
	name = strings.ToUpper(name[:1]) + name[1:]
	key := folder + "." + source
	if other, ok := t.met[name]; ok && other != key { // two packages have a type of that name
		pkg := folder[strings.LastIndexByte(folder, '/')+1:]
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	ref := ordered{{"$ref", "#/components/schemas/" + name}}
	if other, ok := t.met[name]; ok && other == key {
		return ref, nil
	}
	t.met[name] = key
	s, err := t.load(folder)
	if err != nil {
		return nil, err
	}
	spec := s.specs[source]
	if spec == nil {
		return nil, fmt.Errorf("%s has no type %s", folder, source)
	}
	at := len(t.components)
	t.components = append(t.components, member{name: name})
	schema := ordered{}
	// Of a type that is written by way of another, its own comment counts.
	public := spec
	for original := range s.specs {
		if marshaled(folder, original) == source {
			public = s.specs[original]
		}
	}
	if doc := sentence(public.Name.Name, &ast.ValueSpec{Doc: public.Doc}); doc != "" {
		schema.set("description", doc)
	}
	properties, required := ordered{}, []string{}
	if err := t.fields(folder, spec, spec.Type.(*ast.StructType), &properties, &required); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	schema = append(schema, member{"type", "object"}, member{"properties", properties})
	if len(required) > 0 && !strings.HasSuffix(strings.ToLower(name), "request") && name != "Decision" && name != "Match" {
		schema.set("required", required)
	}
	t.components[at].value = schema
	return ref, nil
}

func (t *types) fields(folder string, spec *ast.TypeSpec, s *ast.StructType, properties *ordered, required *[]string) error {
	for _, f := range s.Fields.List {
		if embedded, ok := f.Type.(*ast.Ident); ok && f.Names == nil {
			if err := t.embedded(folder, embedded.Name, properties, required); err != nil {
				return err
			}
			continue
		}
		tag := ""
		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				return err
			}
			tag = reflect.StructTag(text).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if tag == "" || name == "-" {
			continue // no message has it
		}
		schema, err := t.expression(folder, spec, f.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if doc := sentence(f.Names[0].Name, &ast.ValueSpec{Doc: f.Doc, Comment: f.Comment}); doc != "" {
			schema = append(ordered{{"description", doc}}, schema...)
		}
		properties.set(name, schema)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
	return nil
}

// embedded adds the fields of a struct that another has within it.
func (t *types) embedded(folder, name string, properties *ordered, required *[]string) error {
	spec := t.packages[folder].specs[name]
	for spec != nil {
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			return t.fields(folder, spec, typ, properties, required)
		case *ast.Ident:
			spec = t.packages[folder].specs[typ.Name]
		default:
			return fmt.Errorf("%s embeds %s, which is no struct", folder, name)
		}
	}
	return fmt.Errorf("%s embeds %s, which is not there", folder, name)
}

// expression is the schema of a type as it is written.
func (t *types) expression(folder string, spec *ast.TypeSpec, e ast.Expr) (ordered, error) {
	switch x := e.(type) {
	case *ast.StarExpr:
		return t.expression(folder, spec, x.X)
	case *ast.ArrayType:
		items, err := t.expression(folder, spec, x.Elt)
		return ordered{{"type", "array"}, {"items", items}}, err
	case *ast.MapType:
		values, err := t.expression(folder, spec, x.Value)
		return ordered{{"type", "object"}, {"additionalProperties", values}}, err
	case *ast.SelectorExpr:
		pkg := x.X.(*ast.Ident).Name
		switch pkg + "." + x.Sel.Name {
		case "time.Time":
			return ordered{{"type", "string"}, {"format", "date-time"}}, nil
		case "json.RawMessage":
			return ordered{}, nil
		}
		path, own := strings.CutPrefix(t.packages[folder].imports[spec][pkg], module)
		if !own {
			return nil, fmt.Errorf("no schema for %s.%s", pkg, x.Sel.Name)
		}
		return t.named(path, x.Sel.Name)
	case *ast.Ident:
		switch x.Name {
		case "string":
			return ordered{{"type", "string"}}, nil
		case "bool":
			return ordered{{"type", "boolean"}}, nil
		case "any":
			return ordered{}, nil
		case "float64":
			return ordered{{"type", "number"}}, nil
		case "int", "int64", "uint64", "int32", "uint8":
			return ordered{{"type", "integer"}}, nil
		}
		return t.named(folder, x.Name)
	}
	return nil, fmt.Errorf("no schema for a %T", e)
}
