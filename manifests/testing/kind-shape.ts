import ts from 'typescript';

/**
 * The shape of a kind's objects that both a TypeScript definition and an OpenAPI schema describe.
 * The names of optional fields end in `?`. `enum` is sorted.
 */
export type TypeShape =
  | 'string'
  | 'number'
  | 'boolean'
  | { readonly enum: readonly string[] }
  | { readonly list: TypeShape }
  | { readonly map: TypeShape }
  | { readonly fields: Readonly<Record<string, TypeShape>> };

/** The part of an OpenAPI v3 schema that Kubernetes calls structural. */
export interface StructuralSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly required?: readonly string[];
  readonly items?: StructuralSchema;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly maximum?: number;
  readonly minimum?: number;
}

export function shapeOfSchema(schema: StructuralSchema, path = ''): TypeShape {
  if (schema.enum !== undefined) return { enum: [...schema.enum].sort() };
  switch (schema.type) {
    case 'string':
    case 'boolean':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return { list: shapeOfSchema(schema.items ?? {}, `${path}[]`) };
    case 'object':
      return shapeOfObject(schema, path);
    default:
      throw new TypeError(`${path} has type ${schema.type ?? 'undefined'}, which no shape is for`);
  }
}

function shapeOfObject(
  { additionalProperties: values, properties, required = [] }: StructuralSchema,
  path: string,
): TypeShape {
  if (values !== undefined) return { map: shapeOfSchema(values, `${path}{}`) };
  const fields = Object.entries(properties ?? {}).map(
    ([name, property]) =>
      [required.includes(name) ? name : `${name}?`, shapeOfSchema(property, `${path}.${name}`)] as const,
  );
  return { fields: Object.fromEntries(fields) };
}

/** The shape of an exported interface of a source file. */
export function shapeOfInterface(file: string, name: string): TypeShape {
  const program = ts.createProgram([file], { strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: [] });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  const found = module && checker.getExportsOfModule(module).find((symbol) => symbol.name === name);
  if (found === undefined) throw new TypeError(`${file} exports no ${name}`);
  return shapeOfType(checker.getDeclaredTypeOfSymbol(found), checker, name);
}

function shapeOfType(type: ts.Type, checker: ts.TypeChecker, path: string): TypeShape {
  if (type.flags & ts.TypeFlags.String) return 'string';
  if (type.flags & ts.TypeFlags.Number) return 'number';
  if (type.flags & ts.TypeFlags.Boolean) return 'boolean';
  if (type.isStringLiteral()) return { enum: [type.value] };
  if (type.isUnion() && type.types.every((member) => member.isStringLiteral())) {
    return { enum: type.types.map(({ value }) => value).sort() };
  }
  if (checker.isArrayType(type)) {
    const [element] = checker.getTypeArguments(type as ts.TypeReference);
    if (element !== undefined) return { list: shapeOfType(element, checker, `${path}[]`) };
  }
  if (!(type.flags & ts.TypeFlags.Object))
    throw new TypeError(`${path} is ${checker.typeToString(type)}: no shape is for it`);
  const valueType = checker.getIndexTypeOfType(type, ts.IndexKind.String);
  if (valueType !== undefined) return { map: shapeOfType(valueType, checker, `${path}{}`) };
  const fields = checker.getPropertiesOfType(type).map((property) => {
    const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0;
    const fieldType = checker.getTypeOfSymbol(property);
    const wanted = isOptional ? checker.getNonNullableType(fieldType) : fieldType;
    return [
      isOptional ? `${property.name}?` : property.name,
      shapeOfType(wanted, checker, `${path}.${property.name}`),
    ] as const;
  });
  return { fields: Object.fromEntries(fields) };
}
