/** Code in a Markdown document: a span in backticks, or a line of a fenced block. */
export interface CodeText {
  readonly text: string;
  /** 1-based. */
  readonly line: number;
}

const FENCE = /^\s*```/;

export function codeOf(markdown: string): CodeText[] {
  const found: CodeText[] = [];
  let fenced = false;
  for (const [index, line] of markdown.split('\n').entries()) {
    if (FENCE.test(line)) fenced = !fenced;
    else if (fenced) found.push({ text: line.trim(), line: index + 1 });
    else for (const [, text = ''] of line.matchAll(/`([^`]+)`/g)) found.push({ text, line: index + 1 });
  }
  return found;
}

/** The fenced blocks of a language. */
export function fencedBlocks(markdown: string, language: string): string[] {
  const blocks = markdown.matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].flatMap(([, name, text = '']) => (name === language ? [text] : []));
}

/** The targets of links to files of the repository, without their anchors. */
export function linksOf(markdown: string): string[] {
  return [...markdown.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of links to headings, with the file that has the heading: '' is the document itself. */
export function anchorsOf(markdown: string): { target: string; anchor: string }[] {
  return [...markdown.matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)].map(([, target = '', anchor = '']) => ({
    target,
    anchor,
  }));
}

/** The anchors of a document's headings, as GitHub makes them. */
export function headingsOf(markdown: string): string[] {
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Words that are paths from the root: in one of its folders, or a source or document beside them. */
export function pathsIn(code: string, folders: ReadonlySet<string>): string[] {
  return code.split(/\s+/).filter((word) => {
    if (!/^[\w.@-]+(\/[\w.@-]+)*\/?$/.test(word)) return false;
    const [first = '', ...rest] = word.split('/');
    return rest.length > 0 ? folders.has(first) : /\.(ts|js|md)$/.test(word);
  });
}

/** The names behind `make` and `npm run`. */
export function targetsIn(code: string, command: 'make' | 'npm run'): string[] {
  return [...code.matchAll(new RegExp(`(?:^|[\\s;&])${command} ([a-z0-9:-]+)`, 'g'))].map(([, name = '']) => name);
}

/** Programs that have flags of their own. */
const OTHER_PROGRAMS = /^(cosign|gh|sha256sum|kubectl|kube-apiserver|docker|helm|kind|npm|npx|node|git|\w+=\S+) /;

/** Flags of our own executable, without values. */
export function flagsIn(code: string): string[] {
  if (OTHER_PROGRAMS.test(code)) return [];
  return [...code.matchAll(/(?:^|\s)--([a-z][a-z0-9-]*)/g)].map(([, name = '']) => name);
}

/** A paragraph or the paragraph of an element of a list, as a reader sees it: without the targets of links. */
export function paragraphsOf(markdown: string): { line: number; text: string }[] {
  const found: { line: number; text: string }[] = [];
  let fenced = false;
  let open = false;
  for (const [index, line] of markdown.split('\n').entries()) {
    const isFence = FENCE.test(line);
    if (isFence) fenced = !fenced;
    const isProse = !isFence && !fenced && !/^\s*(?:[|#<]|$)/.test(line);
    if (isProse && (!open || /^\s*(?:[-*]|\d+\.) /.test(line))) found.push({ line: index + 1, text: '' });
    if (isProse) found.at(-1)!.text += ` ${line.trim().replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')}`;
    open = isProse;
  }
  return found.map(({ line, text }) => ({ line, text: text.trim() }));
}
