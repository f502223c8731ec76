import { memo } from "preact/compat";
import { useMemo, useRef } from "preact/hooks";
import { CopyButton } from "../parts/copy";
import { GrowingText } from "./blocks";
import { parseInline } from "./inline";
import { hiddenHost } from "./links";
import type { Align, Block, Inline, Item } from "./tree";

/** A text in Markdown. While it is `growing`, unfinished marks at its end already look as they will. */
export function Markdown({ text, growing = false }: { text: string; growing?: boolean }) {
  const reader = useRef<GrowingText | null>(null);
  reader.current ??= new GrowingText();
  const blocks = reader.current.read(text);
  return (
    <div class="prose">
      {blocks.map(({ block, source }, i) => (
        <TopBlockView key={i} block={block} source={source} open={growing && i === blocks.length - 1} />
      ))}
    </div>
  );
}

interface TopProps {
  block: Block;
  source: string;
  open: boolean;
}

/** A block is drawn again only when its own lines have changed. */
const TopBlockView = memo(
  ({ block, open }: TopProps) => <BlockView block={block} open={open} />,
  (before: TopProps, after: TopProps) => before.source === after.source && before.open === after.open,
);

function BlockView({ block, open }: { block: Block; open: boolean }) {
  switch (block.kind) {
    case "paragraph":
      return <p><Line text={block.text} open={open} /></p>;
    case "heading":
      return <Heading level={block.level} text={block.text} open={open} />;
    case "code":
      return <CodeBlock language={block.language} text={block.text} />;
    case "quote":
      return <blockquote><Blocks blocks={block.blocks} open={open} /></blockquote>;
    case "list":
      return <List ordered={block.ordered} start={block.start} items={block.items} open={open} />;
    case "table":
      return <Table align={block.align} head={block.head} rows={block.rows} />;
    case "rule":
      return <hr />;
  }
}

function Blocks({ blocks, open }: { blocks: Block[]; open: boolean }) {
  return <>{blocks.map((block, i) => <BlockView key={i} block={block} open={open && i === blocks.length - 1} />)}</>;
}

/** Headings of an answer stand below those of the page. */
function Heading({ level, text, open }: { level: number; text: string; open: boolean }) {
  const Tag = `h${Math.min(6, level + 2)}` as "h3";
  return <Tag class={`heading-${level}`}><Line text={text} open={open} /></Tag>;
}

/** A block of code with its language and a button to copy it. */
export function CodeBlock({ language, text }: { language: string; text: string }) {
  return (
    <figure class="code">
      <figcaption>
        <span>{language || "text"}</span>
        <CopyButton text={text} what="code" />
      </figcaption>
      <pre tabIndex={0} aria-label={`Code, ${language || "text"}`}><code>{text}</code></pre>
    </figure>
  );
}

function List({ ordered, start, items, open }: { ordered: boolean; start: number; items: Item[]; open: boolean }) {
  const children = items.map((item, i) => <ItemView key={i} item={item} open={open && i === items.length - 1} />);
  return ordered ? <ol start={start}>{children}</ol> : <ul>{children}</ul>;
}

/** An item's first paragraph stands beside its mark, without a paragraph's space. */
function ItemView({ item, open }: { item: Item; open: boolean }) {
  const [first, ...rest] = item.blocks;
  const plain = first?.kind === "paragraph";
  return (
    <li class={item.done === null ? undefined : "task"}>
      {item.done !== null && <input type="checkbox" checked={item.done} disabled aria-label={item.done ? "Done" : "To do"} />}
      {plain && <Line text={first.text} open={open && rest.length === 0} />}
      <Blocks blocks={plain ? rest : item.blocks} open={open} />
    </li>
  );
}

function Table({ align, head, rows }: { align: Align[]; head: string[]; rows: string[][] }) {
  const cls = (i: number) => (align[i] ? `align-${align[i]}` : undefined);
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead><tr>{head.map((cell, i) => <th key={i} scope="col" class={cls(i)}><Line text={cell} /></th>)}</tr></thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={r}>{row.map((cell, i) => <td key={i} class={cls(i)}><Line text={cell} /></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ text, open = false }: { text: string; open?: boolean }) {
  const pieces = useMemo(() => parseInline(text, open), [text, open]);
  return <Pieces pieces={pieces} />;
}

function Pieces({ pieces }: { pieces: Inline[] }) {
  return <>{pieces.map((piece, i) => <Piece key={i} piece={piece} />)}</>;
}

function Piece({ piece }: { piece: Inline }) {
  switch (piece.kind) {
    case "text":
      return <>{piece.text}</>;
    case "code":
      return <code>{piece.text}</code>;
    case "break":
      return <br />;
    case "strong":
      return <strong><Pieces pieces={piece.inner} /></strong>;
    case "em":
      return <em><Pieces pieces={piece.inner} /></em>;
    case "strike":
      return <s><Pieces pieces={piece.inner} /></s>;
    case "link":
      return <Link href={piece.href} inner={piece.inner} />;
  }
}

/** A link opens in a tab of its own that knows nothing of this page, and says where it leads if its words lie. */
function Link({ href, inner }: { href: string; inner: Inline[] }) {
  const hidden = hiddenHost(href, wordsIn(inner));
  return (
    <>
      <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow"><Pieces pieces={inner} /></a>
      {hidden && <span class="muted"> ({hidden})</span>}
    </>
  );
}

function wordsIn(pieces: Inline[]): string {
  return pieces.map((piece) => ("text" in piece ? piece.text : "inner" in piece ? wordsIn(piece.inner) : " ")).join("");
}
